package api

import "github.com/keyload/keyload/fault"

// PatchOp is what a patch does with its field.
type PatchOp string

// The operations of a patch.
const (
	PatchSet       PatchOp = "set"       // store the value
	PatchRemove    PatchOp = "remove"    // remove the field
	PatchIncrement PatchOp = "increment" // add the value, an integer
)

// Patch is one change of one field of a document.
type Patch struct {
	Op    PatchOp `json:"op" cbor:"1,keyasint" enum:"set,remove,increment" doc:"what to do with the field"`
	Path  string  `json:"path" cbor:"2,keyasint" format:"pointer" doc:"JSON pointer of the field"`
	Value JSON    `json:"value,omitzero" cbor:"3,keyasint,omitempty" maxLength:"1048576" doc:"the new value, or the integer to add"`
}

// Check wants a value exactly where the operation uses one.
func (p *Patch) Check() []fault.Violation {
	switch {
	case p.Op == PatchRemove && len(p.Value) > 0:
		return []fault.Violation{{Path: "/value", Message: "is not used by remove"}}
	case (p.Op == PatchSet || p.Op == PatchIncrement) && len(p.Value) == 0:
		return []fault.Violation{{Path: "/value", Message: "is required"}}
	}
	return nil
}
