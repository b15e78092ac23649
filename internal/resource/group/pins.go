package group

import (
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// pins visits the checkpoints of the groups of a source, paused and held ones
// too: what is after a checkpoint stays.
func pins(s *op.Scope, source []byte, visit func(op.Pin) (more bool, err error)) error {
	return definitions.Scan(s.R, table.Range{Prefix: source}, func(n name, def *definition) (bool, error) {
		h, err := headOf(s, def.ref(n))
		if err != nil {
			return false, err
		}
		return visit(op.Pin{Holder: n.Group, Position: h.Checkpoint})
	})
}
