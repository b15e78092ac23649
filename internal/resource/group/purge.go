package group

import (
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// purge removes at most budget rows of the groups of a deleted topic or stream
// set in one partition; fewer means that none is left, so a step that bytes ended
// answers the whole budget. Definitions and the markers of deleted groups go first,
// with their due rows, so that nothing happens by itself to what is half removed.
func purge(c *op.Ctx, owner table.Owner, budget int) (removed int, err error) {
	if removed, err = forgetAll(c, owner, budget); err != nil {
		return removed, err
	}
	n, err := unmark(c, owner, budget-removed)
	if removed += n; err != nil {
		return removed, err
	}
	for _, t := range Tables() {
		if removed >= budget {
			break
		}
		n, next, err := table.RemoveSome(c.Tx, owner.Append([]byte{byte(t.ID)}), nil, budget-removed)
		if removed += n; err != nil {
			return removed, err
		}
		if next != nil {
			return budget, nil
		}
	}
	return removed, nil
}

// forgetAll removes at most budget definitions, with their due rows.
func forgetAll(c *op.Ctx, owner table.Owner, budget int) (int, error) {
	type found struct {
		name name
		ref  ref
	}
	var groups []found
	err := definitions.Scan(c.Tx, table.Range{Prefix: owner.Append(nil)}, func(n name, def *definition) (bool, error) {
		if len(groups) < budget {
			groups = append(groups, found{n, def.ref(n)})
		}
		return len(groups) < budget, nil
	})
	if err != nil {
		return 0, err
	}
	for i, g := range groups {
		h, err := headOf(&c.Scope, g.ref)
		if err != nil {
			return i, err
		}
		armed := h.Armed
		table.Arm(c.Tx, owner.Shard, table.DueGroup, g.name.append(nil), &armed, 0)
		definitions.Delete(c.Tx, g.name)
	}
	return len(groups), nil
}

// unmark removes at most budget markers of deleted groups, with their due rows.
func unmark(c *op.Ctx, owner table.Owner, budget int) (int, error) {
	type found struct {
		ref    ref
		marker removal
	}
	var groups []found
	err := removals.Scan(c.Tx, table.Range{Prefix: owner.Append(nil)}, func(f ref, m *removal) (bool, error) {
		if len(groups) < budget {
			groups = append(groups, found{f, *m})
		}
		return len(groups) < budget, nil
	})
	if err != nil {
		return 0, err
	}
	for _, g := range groups {
		table.Arm(c.Tx, owner.Shard, table.DueRemoval, g.ref.append(nil), &g.marker.Armed, 0)
		removals.Delete(c.Tx, g.ref)
	}
	return len(groups), nil
}
