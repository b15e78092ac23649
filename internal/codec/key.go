package codec

import (
	"encoding/binary"
	"errors"
)

// ErrKey says that stored key bytes do not have the form their table fixes.
var ErrKey = errors.New("key bytes do not have the form of their table")

// AppendUint8, 16, 32 and 64 append big-endian numbers, so that byte order is
// number order.
func AppendUint8(dst []byte, v uint8) []byte { return append(dst, v) }

// AppendUint16 appends two bytes, big-endian.
func AppendUint16(dst []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(dst, v) }

// AppendUint32 appends four bytes, big-endian.
func AppendUint32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

// AppendUint64 appends eight bytes, big-endian.
func AppendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

// AppendInt64 appends eight bytes whose order is the order of signed numbers.
func AppendInt64(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^(1<<63))
}

const (
	textEscape     = 0x00 // a zero byte inside a text is written 0x00 0xFF
	textEscapeZero = 0xFF
	textEnd        = 0x01 // a text ends with 0x00 0x01, below any continuation
)

// AppendText appends a text (any bytes) in a form that ends itself and keeps
// the order of the raw bytes, so that further key parts can follow.
func AppendText(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] == textEscape {
			dst = append(dst, textEscape, textEscapeZero)
			continue
		}
		dst = append(dst, s[i])
	}
	return append(dst, textEscape, textEnd)
}

// KeyReader takes a key apart. The first failure sticks; check Err at the end.
type KeyReader struct {
	rest []byte
	err  error
}

// NewKeyReader reads the parts of key from its start.
func NewKeyReader(key []byte) KeyReader { return KeyReader{rest: key} }

// Err is ErrKey when a part was missing or malformed.
func (r *KeyReader) Err() error { return r.err }

// Rest is what has not been read.
func (r *KeyReader) Rest() []byte { return r.rest }

// End is Err, or ErrKey when bytes are left over.
func (r *KeyReader) End() error {
	if r.err == nil && len(r.rest) != 0 {
		r.err = ErrKey
	}
	return r.err
}

// Bytes reads exactly n bytes; the result aliases the key.
func (r *KeyReader) Bytes(n int) []byte {
	if r.err != nil || len(r.rest) < n {
		r.err = ErrKey
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Uint8 reads one byte.
func (r *KeyReader) Uint8() uint8 {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint16 reads two bytes.
func (r *KeyReader) Uint16() uint16 {
	if b := r.Bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// Uint32 reads four bytes.
func (r *KeyReader) Uint32() uint32 {
	if b := r.Bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Uint64 reads eight bytes.
func (r *KeyReader) Uint64() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Int64 reads eight bytes written by AppendInt64.
func (r *KeyReader) Int64() int64 { return int64(r.Uint64() ^ (1 << 63)) }

// Text reads a text written by AppendText.
func (r *KeyReader) Text() string {
	if r.err != nil {
		return ""
	}
	plain := true
	for i := 0; i+1 < len(r.rest); i++ {
		if r.rest[i] != textEscape {
			continue
		}
		switch r.rest[i+1] {
		case textEnd:
			raw := r.rest[:i]
			r.rest = r.rest[i+2:]
			if plain {
				return string(raw)
			}
			return unescape(raw)
		case textEscapeZero:
			plain = false
			i++
		default:
			r.err = ErrKey
			return ""
		}
	}
	r.err = ErrKey
	return ""
}

func unescape(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		out = append(out, raw[i])
		if raw[i] == textEscape {
			i++
		}
	}
	return string(out)
}

// PrefixEnd is the first key after every key that starts with prefix; nil when
// there is none (the prefix is empty or all 0xFF).
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
