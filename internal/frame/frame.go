package frame

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Protocol is the name in the Upgrade header of the request that opens a
// session.
const Protocol = "keyload-session/1"

// CallsHeader names the header of the answer that says how many calls one
// session may have in flight.
const CallsHeader = "Keyload-Session-Calls"

// Kind says what a frame is.
type Kind byte

// The kinds of frames. Append only.
const (
	Call    Kind = 1 // client: operation number (2 bytes), then the request in CBOR
	Cancel  Kind = 2 // client: the caller of this call went away; no body
	Result  Kind = 3 // server: the response in CBOR
	Fault   Kind = 4 // server: the error in CBOR
	Ping    Kind = 5 // either side: answer with Pong; no body, call id 0
	Pong    Kind = 6 // no body, call id 0
	Goodbye Kind = 7 // server: no call sent after this is answered; the error in CBOR, call id 0
)

const (
	headerBytes = 9               // length, kind, call id
	minLength   = headerBytes - 4 // what length counts at least
	// OperationBytes is the size of the operation number before a request.
	OperationBytes = 2
)

// Header is the start of a frame.
type Header struct {
	Kind Kind
	ID   uint32 // call id; chosen by the client, unique among its calls in flight
	Size int    // bytes of the body
}

// Reader reads frames of one connection. It is used by one goroutine.
type Reader struct {
	buf   *bufio.Reader
	limit int
}

// readBufferBytes lets one read take many small frames.
const readBufferBytes = 64 << 10

// NewReader reads frames whose bodies have at most limit bytes. Longer ones are
// an error of the connection: whoever sends them does not speak this protocol.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{bufio.NewReaderSize(r, readBufferBytes), limit}
}

// Next reads the header of the next frame. The caller must read or skip exactly
// its body before the next call. After an error that is a timeout it may be
// called again: nothing is lost.
func (r *Reader) Next() (Header, error) {
	b, err := r.buf.Peek(headerBytes)
	if err != nil {
		if len(b) > 0 {
			err = eof(err)
		}
		return Header{}, err
	}
	length := binary.BigEndian.Uint32(b)
	h := Header{Kind: Kind(b[4]), ID: binary.BigEndian.Uint32(b[5:])}
	if length < minLength || length-minLength > uint32(r.limit) {
		return h, fmt.Errorf("frame: length %d is not between %d and %d", length, minLength, r.limit+minLength)
	}
	h.Size = int(length) - minLength
	_, err = r.buf.Discard(headerBytes)
	return h, err
}

// Read fills b with the next bytes of the body.
func (r *Reader) Read(b []byte) error {
	if _, err := io.ReadFull(r.buf, b); err != nil {
		return eof(err)
	}
	return nil
}

// Skip drops the next n bytes of the body.
func (r *Reader) Skip(n int) error {
	if _, err := r.buf.Discard(n); err != nil {
		return eof(err)
	}
	return nil
}

// eof within a frame is never the orderly end of a connection.
func eof(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Append adds one frame to b; its body is head followed by body, whatever Size says.
func (h Header) Append(b, head, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(minLength+len(head)+len(body)))
	b = append(b, byte(h.Kind))
	b = binary.BigEndian.AppendUint32(b, h.ID)
	b = append(b, head...)
	return append(b, body...)
}
