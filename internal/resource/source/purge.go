package source

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Purge cuts the events up to a position and returns the cut. The command moves
// the head and no more: reads below the cut are refused and the room is free at
// once, whatever was cut; due steps remove the rows. The ids stay, with the
// digests of their contents, until the source's eventIdRetentionSeconds have
// passed, so repeats of purged events are still told apart. Cutting again at or
// below the cut changes nothing and succeeds, since nothing is left to remove.
// Errors: Validation above the tail, ResourceExhausted above the lowest pin.
func Purge(c *op.Ctx, r *api.Resource, k Key, through uint64) (cut uint64, err error) {
	h, _, err := heads.Get(c.R, k)
	if err != nil {
		return 0, err
	}
	if through > h.Tail {
		e := fault.Invalid("/throughPosition", "is %d, after the last position %d", through, h.Tail)
		return 0, e.With("tail", "%d", h.Tail)
	}
	if through <= h.Cut {
		return h.Cut, nil
	}
	pin, err := held(&c.Scope, k, &h, through)
	if err != nil {
		return 0, err
	}
	if pin != nil {
		instead := ""
		if pin.Position > h.Cut {
			instead = fmt.Sprintf(", or purge through %d at most", pin.Position)
		}
		return 0, pinned(&c.Scope, r, k, &h, pin, through, fmt.Sprintf("the events up to position %d cannot be purged", through), instead)
	}
	bytes, err := bytesThrough(&c.Scope, k, &h, through)
	if err != nil {
		return 0, err
	}
	// From here on it succeeds.
	h.cut(c, r, k, through, bytes, c.Now)
	heads.Put(c.Tx, k, &h)
	return through, nil
}

// removePurged is one step of removing the rows of purged events: at most
// budget of them. Their ids are listed for forgetIDs.
func removePurged(c *op.Ctx, owner []byte, budget int) error {
	k, h, ok, err := dueHead(c, owner)
	if err != nil || !ok {
		return err
	}
	h.ArmedPurge = 0
	from := h.Removed + 1
	through := min(h.Cut, h.Removed+uint64(max(budget, 1)))
	ids := make([]string, 0, through-h.Removed)
	err = scanRows(&c.Scope, k, from, through, false, func(_ uint64, key, value []byte) (bool, error) {
		var e Record
		if err := e.decode(value); err != nil {
			return false, damaged(key, err)
		}
		ids = append(ids, string(e.ID))
		return true, nil
	})
	if err != nil {
		return err
	}
	for p := from; p <= through; p++ {
		events.Delete(c.Tx, eventKey{k, p})
	}
	for len(ids) > 0 {
		n := min(len(ids), maxListIDs)
		from += uint64(n)
		purgedIDs.Insert(c.Tx, eventKey{k, from - 1}, &idList{Until: h.KeepIDsUntil, IDs: ids[:n]})
		ids = ids[n:]
	}
	h.Removed = through
	if h.Removed > h.Forgotten && h.ArmedIDs == 0 {
		arm(c, k, table.DuePurgedIDs, &h.ArmedIDs, h.KeepIDsUntil)
	}
	if h.Removed < h.Cut {
		arm(c, k, table.DuePurge, &h.ArmedPurge, c.Now)
	}
	heads.Put(c.Tx, k, &h)
	return nil
}

// forgetIDs is one step of removing the identities of purged events whose
// retention has passed: at most budget of them, in the order of positions.
func forgetIDs(c *op.Ctx, owner []byte, budget int) error {
	k, h, ok, err := dueHead(c, owner)
	if err != nil || !ok {
		return err
	}
	h.ArmedIDs = 0
	budget = max(budget, 1)
	lists, next, err := dueLists(c, k, &h, budget)
	if err != nil {
		return err
	}
	for _, l := range lists {
		n := min(len(l.IDs), budget)
		for _, id := range l.IDs[:n] {
			identities.Delete(c.Tx, idKey{k, id})
		}
		h.Forgotten += uint64(n)
		budget -= n
		if n == len(l.IDs) {
			purgedIDs.Delete(c.Tx, eventKey{k, l.last})
			continue
		}
		next = l.Until
		purgedIDs.Put(c.Tx, eventKey{k, l.last}, &idList{Until: l.Until, IDs: l.IDs[n:]})
	}
	arm(c, k, table.DuePurgedIDs, &h.ArmedIDs, next)
	heads.Put(c.Tx, k, &h)
	return nil
}

// dueList is an idList with the position it ends at.
type dueList struct {
	last uint64
	idList
}

// dueLists reads the lists whose retention has passed, as many as the budget
// asks for, and the instant at which the one after them is due; 0 is none.
func dueLists(c *op.Ctx, k Key, h *Head, budget int) (out []dueList, next int64, err error) {
	rg := table.Range{Prefix: k.Append(nil), From: eventKey{k, h.Forgotten + 1}.append(nil)}
	err = purgedIDs.Scan(c.R, rg, func(key eventKey, l *idList) (bool, error) {
		if l.Until > c.Now || budget <= 0 {
			next = l.Until
			return false, nil
		}
		out = append(out, dueList{key.Position, *l})
		budget -= len(l.IDs)
		return true, nil
	})
	return out, next, err
}

// dueHead finds the head a due row belongs to. It is gone when the resource is
// being deleted; then there is nothing to do here.
func dueHead(c *op.Ctx, owner []byte) (Key, Head, bool, error) {
	k, err := parseKey(owner)
	if err != nil {
		return Key{}, Head{}, false, badOwner(owner, err)
	}
	h, ok, err := heads.Get(c.R, k)
	return k, h, ok, err
}

func badOwner(owner []byte, err error) error {
	return &table.Damage{Table: table.DueRows.Name, Key: owner, Cause: err}
}

// remove deletes at most budget rows of a deleted topic or stream set in one
// partition; fewer means that none is left, so a step that bytes ended answers the
// whole budget. Heads go first, with their due rows, so no due step meets a source
// that is half gone.
func remove(c *op.Ctx, owner table.Owner, budget int) (removed int, err error) {
	removed, err = removeHeads(c, owner, budget)
	for _, id := range [...]table.ID{events.ID, identities.ID, purgedIDs.ID} {
		if err != nil || removed >= budget {
			return removed, err
		}
		var n int
		var next []byte
		n, next, err = table.RemoveSome(c.Tx, owner.Append([]byte{byte(id)}), nil, budget-removed)
		if removed += n; next != nil {
			return budget, err
		}
	}
	return removed, err
}

func removeHeads(c *op.Ctx, owner table.Owner, budget int) (int, error) {
	type row struct {
		key  Key
		head Head
	}
	var rows []row
	err := heads.Scan(c.R, table.Range{Prefix: owner.Append(nil)}, func(k Key, h *Head) (bool, error) {
		if len(rows) < budget {
			rows = append(rows, row{k, *h})
		}
		return len(rows) < budget, nil
	})
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		arm(c, r.key, table.DuePurge, &r.head.ArmedPurge, 0)
		arm(c, r.key, table.DuePurgedIDs, &r.head.ArmedIDs, 0)
		arm(c, r.key, table.DueAge, &r.head.ArmedAge, 0)
		heads.Delete(c.Tx, r.key)
	}
	return len(rows), nil
}
