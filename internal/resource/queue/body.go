package queue

import (
	"crypto/sha256"
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
)

// body is what a message carries. It is written once, by enqueue, and removed
// when the message is finished.
type body struct {
	JSON        bool // Payload is a JSON value; else bytes with a content type
	Payload     []byte
	ContentType string
	Headers     []header // sorted by name
}

type header struct{ Name, Value string }

const (
	bodyVersion = 1
	bodyJSON    = 1
	bodyBytes   = 2
)

// bodyOf takes the content of a message as it came in a request.
func bodyOf(m *api.Message) body {
	b := body{JSON: m.Payload != nil, Payload: m.Payload, ContentType: m.ContentType}
	if !b.JSON {
		b.Payload = m.PayloadBase64
	}
	if len(m.Headers) > 0 {
		b.Headers = make([]header, 0, len(m.Headers))
		//keyload:sorted the headers are sorted below
		for name, value := range m.Headers {
			b.Headers = append(b.Headers, header{name, value})
		}
		slices.SortFunc(b.Headers, func(x, y header) int {
			if x.Name < y.Name {
				return -1
			}
			return 1
		})
	}
	return b
}

// content is the number of bytes of payload and headers.
func (b *body) content() uint64 {
	n := len(b.Payload)
	for _, h := range b.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return uint64(n)
}

// headers is the map a delivery shows; nil when there is none.
func (b *body) headers() map[string]string {
	if len(b.Headers) == 0 {
		return nil
	}
	out := make(map[string]string, len(b.Headers))
	for _, h := range b.Headers {
		out[h.Name] = h.Value
	}
	return out
}

func encodeBody(dst []byte, b *body) []byte {
	kind := byte(bodyBytes)
	if b.JSON {
		kind = bodyJSON
	}
	dst = append(dst, bodyVersion, kind)
	dst = codec.AppendBytes(dst, b.Payload)
	dst = codec.AppendString(dst, b.ContentType)
	dst = codec.AppendUvarint(dst, uint64(len(b.Headers)))
	for _, h := range b.Headers {
		dst = codec.AppendString(codec.AppendString(dst, h.Name), h.Value)
	}
	return dst
}

// decodeBody keeps the payload where it is: it aliases the record.
func decodeBody(record []byte, b *body) error {
	r := codec.NewReader(record)
	r.Version(bodyVersion)
	kind := r.Byte()
	b.JSON = kind == bodyJSON
	b.Payload, b.ContentType = r.Bytes(), r.String()
	n := r.Uvarint()
	if n > uint64(len(record)) || (kind != bodyJSON && kind != bodyBytes) {
		return codec.ErrRecord
	}
	for range n {
		b.Headers = append(b.Headers, header{r.String(), r.String()})
	}
	return r.End()
}

// digestOf identifies everything the producer said of a message but its id:
// the first half of SHA-256 over the body's record and the other fields.
func digestOf(record []byte, m *api.Message, priority uint8) (d [16]byte) {
	h := sha256.New()
	h.Write(record)
	rest := make([]byte, 0, 64+len(m.OrderingKey)+len(m.FairnessKey))
	rest = codec.AppendVarint(rest, int64(m.NotBefore))
	rest = codec.AppendVarint(rest, int64(m.ExpiresAt))
	rest = codec.AppendString(rest, m.OrderingKey)
	rest = codec.AppendString(rest, m.FairnessKey)
	rest = append(rest, priority)
	rest = codec.AppendVarint(rest, m.MaxAttempts)
	h.Write(rest)
	var sum [sha256.Size]byte
	copy(d[:], h.Sum(sum[:0]))
	return d
}
