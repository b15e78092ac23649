package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/keyload/keyload/internal/frame"
)

// Kinds of frames between nodes, beside frame.Call, Cancel, Result, Fault and
// Ping. Append only.
const (
	kindHello   frame.Kind = 32 // who dials, first: hello in CBOR
	kindWelcome frame.Kind = 33 // the answer: welcome in CBOR
	kindMessage frame.Kind = 34 // id: shard; the message
	kindBegin   frame.Kind = 35 // id: shard; a stream begins, no body
	kindChunk   frame.Kind = 36 // bytes of the stream
	kindEnd     frame.Kind = 37 // the stream is complete, no body
	kindFailed  frame.Kind = 38 // a call or stream failed, and may have had effects: a text
	kindRefused frame.Kind = 39 // a call was not handed to anybody: a text
)

const (
	// batchBytes is about what one write joins.
	batchBytes = 1 << 20
	// keptBytes is the largest buffer that is kept for the next write.
	keptBytes = 4 << 20
)

// errProtocol is what a peer does that does not speak the protocol.
var errProtocol = errors.New("the other node breaks the protocol")

// errIdle ends a connection on which not even a ping came.
var errIdle = errors.New("nothing was heard from the other node")

// link is one connection after its handshake. One goroutine reads frames; one of
// its own writes them, and a ping when it has been quiet. Both sides ping, and
// neither answers: a side that hears nothing for long gives up, so that a
// connection that works one way only ends too.
type link struct {
	raw  net.Conn // closed directly: closing TLS in order may wait for the other side
	conn *tls.Conn
	name Name // of the other side
	in   *frame.Reader
	out  *outbox

	ctx    context.Context // ends with the link
	cancel context.CancelCauseFunc

	idle    time.Duration
	flushed chan struct{} // closed when the writer has ended
	finish  sync.Once
	last    chan struct{} // closed: the writer ends when everything is written
}

// newLink wraps a connection; it ends with ctx at the latest. largest is the most
// bytes of a frame's body.
func newLink(ctx context.Context, raw net.Conn, conn *tls.Conn, largest int) *link {
	l := &link{raw: raw, conn: conn, flushed: make(chan struct{}), last: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.in = frame.NewReader(l, largest)
	context.AfterFunc(l.ctx, func() { _ = raw.Close() })
	return l
}

// close ends the link; the first cause is kept.
func (l *link) close(cause error) { l.cancel(cause) }

// cause says why the link ended.
func (l *link) cause() error { return context.Cause(l.ctx) }

// start begins to write what comes into out.
func (l *link) start(out *outbox, t Times, spawn func(func()) bool) bool {
	l.out, l.idle = out, t.IdleAfter
	_ = l.raw.SetDeadline(time.Time{}) // the handshake's
	return spawn(func() { l.write(t.PingEvery) })
}

// write sends what waits in one write, until the link ends.
func (l *link) write(pingEvery time.Duration) {
	defer close(l.flushed)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var batch []*parcel
	var buf []byte
	for {
		var more bool
		batch, more = l.out.take(batch[:0], batchBytes)
		if len(batch) == 0 {
			select {
			case <-l.out.wake:
				continue
			case <-ping.C:
				batch = append(batch, &parcel{kind: frame.Ping})
			case <-l.last:
				if n, _ := l.out.depth(); n > 0 {
					continue
				}
				_ = l.conn.CloseWrite()
				return
			case <-l.ctx.Done():
				return
			}
		}
		buf = buf[:0]
		for i, p := range batch {
			buf = frame.Header{Kind: p.kind, ID: p.id}.Append(buf, p.head, p.body)
			batch[i] = nil
		}
		if _, err := l.conn.Write(buf); err != nil {
			l.close(err)
			return
		}
		if !more && cap(buf) > keptBytes {
			buf = nil
		}
	}
}

// flush writes what waits and then tells the other side that nothing more comes.
func (l *link) flush() {
	l.finish.Do(func() { close(l.last) })
	select {
	case <-l.flushed:
	case <-l.ctx.Done():
	}
}

// Read is for the frame reader. Any byte is a sign of life. After a silence it looks
// once more: it may be this process that did not run, and what came meanwhile waits.
func (l *link) Read(b []byte) (int, error) {
	if l.idle == 0 {
		return l.conn.Read(b)
	}
	for _, patience := range []time.Duration{l.idle, l.idle / 4} {
		_ = l.raw.SetReadDeadline(time.Now().Add(patience))
		n, err := l.conn.Read(b)
		var timeout net.Error
		if n > 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
			return n, err
		}
	}
	return 0, fmt.Errorf("%w for %s", errIdle, l.idle)
}

// next reads the header of the next frame that is no ping. The caller reads
// exactly its body.
func (l *link) next() (frame.Header, error) {
	for {
		h, err := l.in.Next()
		if err != nil || h.Kind != frame.Ping {
			return h, err
		}
		if err := l.in.Skip(h.Size); err != nil {
			return h, err
		}
	}
}

// body reads the body of a frame into memory of its own.
func (l *link) body(h frame.Header) ([]byte, error) {
	b := make([]byte, h.Size)
	return b, l.in.Read(b)
}

// text reads a body that is a text for people; a long one is cut.
func (l *link) text(h frame.Header) (string, error) {
	n := min(h.Size, maxText)
	b := make([]byte, n)
	if err := l.in.Read(b); err != nil {
		return "", err
	}
	return string(b), l.in.Skip(h.Size - n)
}

// maxText is the longest text about a failure, in bytes.
const maxText = 1 << 10

func textOf(err error) []byte {
	s := err.Error()
	return []byte(s[:min(len(s), maxText)])
}

// unexpected is the error for a frame that has no place here.
func unexpected(h frame.Header) error {
	return fmt.Errorf("%w: a frame of kind %d with %d bytes", errProtocol, h.Kind, h.Size)
}
