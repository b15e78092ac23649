package jsontree

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/limits"
)

// Tags of key forms. Values of one kind stand together, kinds in this order; a
// tuple ends below every longer one.
const (
	tagEnd    = 0x01
	tagAbsent = 0x02
	tagNull   = 0x03
	tagFalse  = 0x04
	tagTrue   = 0x05
	tagNumber = 0x06
	tagText   = 0x07
)

// Scalar is one comparable value: null, false, true, a number or a text. Absent
// stands for everything else: no value, an object, an array, or a number whose
// decimal exponent is beyond ±MaxExponent.
//
// Order: absent, null, false, true, numbers by their exact value, texts by code
// points. 1, 1.0 and 10e-1 are one number; "a" and "\u0061" are one text.
type Scalar struct {
	kind Kind // 0 is absent
	text string
	num  decimal
}

// Absent is the value that is none.
var Absent Scalar

// ScalarOf is the scalar of one JSON text.
func ScalarOf(raw []byte) Scalar {
	if len(raw) == 0 {
		return Absent
	}
	switch k := Kind(raw[0]); k {
	case Null, False, True:
		return Scalar{kind: k}
	case Text:
		return Scalar{kind: Text, text: unquote(raw)}
	case Object, Array:
		return Absent
	default:
		if d, ok := parseDecimal(raw); ok {
			return Scalar{kind: Number, num: d}
		}
		return Absent
	}
}

// IsAbsent says that the scalar stands for no comparable value.
func (s Scalar) IsAbsent() bool { return s.kind == 0 }

// Text is the text, and whether the scalar is one.
func (s Scalar) Text() (string, bool) { return s.text, s.kind == Text }

// AppendKey appends the key form: its byte order is the order of scalars, equal
// bytes are equal scalars, and no form is the beginning of another.
func (s Scalar) AppendKey(dst []byte) []byte {
	dst = append(dst, s.tag())
	switch s.kind {
	case Number:
		return s.num.append(dst)
	case Text:
		return codec.AppendText(dst, s.text)
	}
	return dst
}

// tag is the first byte of the key form.
func (s Scalar) tag() byte {
	switch s.kind {
	case Null:
		return tagNull
	case False:
		return tagFalse
	case True:
		return tagTrue
	case Number:
		return tagNumber
	case Text:
		return tagText
	}
	return tagAbsent
}

// TupleBytes is the longest tuple an index takes.
const TupleBytes = limits.IndexEntryBytes

// AppendTupleEnd ends a tuple of key forms, so that ReadTuple finds its end.
func AppendTupleEnd(dst []byte) []byte { return append(dst, tagEnd) }

// ReadTuple reads key forms up to and with the tuple's end and returns their
// bytes without it, aliasing the key.
func ReadTuple(r *codec.KeyReader) []byte {
	all := r.Rest()
	for r.Err() == nil {
		switch r.Uint8() {
		case tagEnd:
			return all[: len(all)-len(r.Rest())-1 : len(all)-len(r.Rest())-1]
		case tagAbsent, tagNull, tagFalse, tagTrue:
		case tagNumber:
			skipDecimal(r)
		case tagText:
			r.Text()
		default:
			fail(r)
		}
	}
	return nil
}

// fail makes the reader report a malformed key.
func fail(r *codec.KeyReader) { r.Bytes(len(r.Rest()) + 1) }
