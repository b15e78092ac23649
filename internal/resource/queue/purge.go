package queue

import (
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// purge removes at most budget rows of one lane of a deleted queue; fewer means
// that none is left, so a step that bytes ended answers the whole budget. The head
// goes first, and with it the lane's row in the due table, so that nothing
// happens by itself to what is half removed.
func purge(c *op.Ctx, owner table.Owner, budget int) (removed int, err error) {
	h, ok, err := heads.Get(c.Tx, owner)
	if err != nil {
		return 0, err
	}
	if ok && budget > 0 {
		table.Arm(c.Tx, owner.Shard, table.DueLane, owner.Append(nil), &h.Armed, 0)
		heads.Delete(c.Tx, owner)
		removed++
	}
	for _, t := range Tables() {
		if t.ID == table.LaneHead {
			continue
		}
		n, next, err := table.RemoveSome(c.Tx, owner.Append([]byte{byte(t.ID)}), nil, budget-removed)
		if err != nil {
			return removed, err
		}
		if removed += n; next != nil {
			return budget, nil
		}
	}
	return removed, nil
}
