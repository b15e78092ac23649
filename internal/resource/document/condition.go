package document

import (
	"bytes"
	"strconv"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/jsontree"
)

// condition is a comparison as an interval, which an index is read between and a
// document's field is held against.
type condition struct {
	path    string
	pointer jsontree.Pointer
	equal   bool
	in      jsontree.Interval
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

// bound fills the interval; false when the value does not fit the comparison.
func (c *condition) bound(o api.ConditionOp, v jsontree.Scalar) bool {
	switch o {
	case api.OpLess, api.OpLessEqual:
		c.in = v.Below(o == api.OpLessEqual)
	case api.OpGreater, api.OpGreaterEqual:
		c.in = v.Above(o == api.OpGreaterEqual)
	case api.OpPrefix:
		text, ok := v.Text()
		c.in = jsontree.TextsWith(text)
		return ok
	default:
		c.in = v.Equal()
	}
	return true
}
