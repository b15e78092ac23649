package document

import (
	"bytes"
	"strconv"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/jsontree"
)

// condition is a comparison as a range of key forms: a field satisfies it when
// its key form is not below lower and is below upper. So an index and a look at
// the document cannot disagree. Values of different types never satisfy each
// other's comparisons: 5 is neither above nor below "x".
type condition struct {
	path         string
	pointer      jsontree.Pointer
	equal        bool
	lower, upper []byte
}

// conditions reads the comparisons of a query.
func conditions(where []api.Condition) ([]condition, error) {
	out := make([]condition, len(where))
	for i := range where {
		c := &where[i]
		pointer, err := jsontree.ParsePointer(c.Path)
		if err != nil {
			return nil, fault.Invalid("/where/"+strconv.Itoa(i)+"/path", "must be a JSON pointer")
		}
		v := jsontree.ScalarOf(bytes.TrimSpace(c.Value))
		if v.IsAbsent() {
			return nil, fault.Invalid("/where/"+strconv.Itoa(i)+"/value", "must be a text, true, false, null, or a number with a decimal exponent within ±%d", jsontree.MaxExponent)
		}
		out[i] = condition{path: c.Path, pointer: pointer, equal: c.Op == api.OpEqual}
		if !out[i].bound(c.Op, v) {
			return nil, fault.Invalid("/where/"+strconv.Itoa(i)+"/value", "must be a text where the comparison is %s", c.Op)
		}
	}
	return out, nil
}

// bound fills the range; false when the value does not fit the comparison.
func (c *condition) bound(o api.ConditionOp, v jsontree.Scalar) bool {
	key := v.AppendKey(nil)
	from, below := v.TypeBounds()
	first, last := []byte{from}, []byte{below}
	switch o {
	case api.OpLess:
		c.lower, c.upper = first, key
	case api.OpLessEqual:
		c.lower, c.upper = first, codec.PrefixEnd(key)
	case api.OpGreater:
		c.lower, c.upper = codec.PrefixEnd(key), last
	case api.OpGreaterEqual:
		c.lower, c.upper = key, last
	case api.OpPrefix:
		text, ok := v.Text()
		if !ok {
			return false
		}
		c.lower = jsontree.AppendTextPrefix(nil, text)
		c.upper = codec.PrefixEnd(c.lower)
	default:
		c.lower, c.upper = key, codec.PrefixEnd(key)
	}
	return true
}

func (c *condition) holds(field jsontree.Scalar) bool {
	key := field.AppendKey(nil)
	return bytes.Compare(key, c.lower) >= 0 && bytes.Compare(key, c.upper) < 0
}
