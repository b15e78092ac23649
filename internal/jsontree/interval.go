package jsontree

import (
	"bytes"

	"github.com/keyload/keyload/internal/codec"
)

// Interval is a set of scalars of one type: those whose key form is not below
// Lower and is below Upper. An index read between the two and Holds cannot
// disagree. false and true are one type; values of different types are never in
// each other's intervals: 5 is neither above nor below "x".
type Interval struct{ Lower, Upper []byte }

// Equal holds what equals s.
func (s Scalar) Equal() Interval {
	key := s.AppendKey(nil)
	return Interval{key, codec.PrefixEnd(key)}
}

// Below holds what is less than s, and s itself if so said.
func (s Scalar) Below(inclusive bool) Interval {
	from, _ := s.typeBounds()
	if inclusive {
		return Interval{[]byte{from}, s.Equal().Upper}
	}
	return Interval{[]byte{from}, s.Equal().Lower}
}

// Above holds what is greater than s, and s itself if so said.
func (s Scalar) Above(inclusive bool) Interval {
	_, below := s.typeBounds()
	if inclusive {
		return Interval{s.Equal().Lower, []byte{below}}
	}
	return Interval{s.Equal().Upper, []byte{below}}
}

// typeBounds are the first bytes of the key forms of all values of the scalar's
// type: from the first on and below the second.
func (s Scalar) typeBounds() (from, below byte) {
	if s.kind == False || s.kind == True {
		return tagFalse, tagTrue + 1
	}
	return s.tag(), s.tag() + 1
}

// TextsWith holds the texts that begin with prefix.
func TextsWith(prefix string) Interval {
	key := codec.AppendText([]byte{tagText}, prefix)
	key = key[:len(key)-2] // without the end of the text
	return Interval{key, codec.PrefixEnd(key)}
}

// Holds says whether s is in the interval.
func (i Interval) Holds(s Scalar) bool {
	key := s.AppendKey(nil)
	return bytes.Compare(key, i.Lower) >= 0 && bytes.Compare(key, i.Upper) < 0
}
