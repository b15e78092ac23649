package codec

import (
	"encoding/binary"
	"errors"
)

// ErrRecord says that stored record bytes do not have the form their version
// fixes.
var ErrRecord = errors.New("record bytes do not have the form of their version")

// Records written by hand are a version byte followed by fields in fixed order:
// unsigned numbers as varints, texts and bytes with a varint length. A new field
// is a new version; readers keep all old ones.

// AppendUvarint appends an unsigned varint.
func AppendUvarint(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, v) }

// AppendVarint appends a signed varint.
func AppendVarint(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// AppendString appends a length and the bytes of s.
func AppendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendBytes appends a length and b.
func AppendBytes(dst []byte, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// AppendBool appends one byte, 0 or 1.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// Reader takes a record apart. The first failure sticks; check End.
type Reader struct {
	rest []byte
	err  error
}

// NewReader reads record from its start.
func NewReader(record []byte) Reader { return Reader{rest: record} }

// Version reads the leading version byte and fails unless it is within 1..max.
func (r *Reader) Version(max byte) byte {
	v := r.Byte()
	if v == 0 || v > max {
		r.err = ErrRecord
	}
	return v
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if r.err != nil || len(r.rest) == 0 {
		r.err = ErrRecord
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Bool reads one byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	b := r.Byte()
	if b > 1 {
		r.err = ErrRecord
	}
	return b == 1
}

// Uvarint reads an unsigned varint.
func (r *Reader) Uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.err = ErrRecord
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Varint reads a signed varint.
func (r *Reader) Varint() int64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.err = ErrRecord
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Bytes reads a length and that many bytes; the result aliases the record.
func (r *Reader) Bytes() []byte {
	n := r.Uvarint()
	if r.err != nil || uint64(len(r.rest)) < n {
		r.err = ErrRecord
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Fixed reads exactly n bytes; the result aliases the record.
func (r *Reader) Fixed(n int) []byte {
	if r.err != nil || len(r.rest) < n {
		r.err = ErrRecord
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// String reads a text.
func (r *Reader) String() string { return string(r.Bytes()) }

// Err is ErrRecord when a field was missing or malformed.
func (r *Reader) Err() error { return r.err }

// End is Err, or ErrRecord when bytes are left over.
func (r *Reader) End() error {
	if r.err == nil && len(r.rest) != 0 {
		r.err = ErrRecord
	}
	return r.err
}
