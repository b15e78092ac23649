package inbox

import (
	"fmt"

	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// check verifies that pruning of every owner of records is armed in time, that every
// input has the form of its owner's, and that no command has processed two. The prune
// order follows from the records.
func check(a *op.Audit) error {
	a.Derives(op.Derived{Table: order.Info(), Subject: orderOf})
	oldest, commands := map[table.Owner]orderKey{}, op.Positions{}
	p, err := pruningOf(a.R, a.Space.Shard)
	if err != nil {
		return err
	}
	err = op.Each(a, &processed, func(k key, v *record) error {
		a.Count("inboxRecords", 1)
		at := orderKey{k.Owner, v.At, v.Position}
		op.Imply(a, &order, at, &k)
		if first, ok := oldest[k.Owner]; !ok || at.At < first.At || at.At == first.At && at.Position < first.Position {
			oldest[k.Owner] = at
		}
		if !wellFormed(k.Owner, k.Input) {
			a.Report("form", where(&k), "the input is none that its owner has")
		}
		switch {
		case !a.Reached(v.Position, v.Epoch):
			a.Report("position", where(&k), "its command is at position %d of epoch %d; the shard is at %d of %d", v.Position, v.Epoch, a.Position, a.Epoch)
		case !commands.Add(v.Position):
			a.Report("position", where(&k), "the command at position %d has processed another input", v.Position)
		}
		if a.Future(v.At) {
			a.Past(where(&k), "its processing", v.At)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = op.Each(a, &heads, func(o table.Owner, h *head) error {
		a.ImplyDue(table.DueInbox, o.Append(nil), h.Armed)
		first, ok := oldest[o]
		delete(oldest, o)
		due := p.due(first.At, first.Position)
		switch {
		case !ok:
			a.Report("bound", a.OwnerName(o), "pruning is armed, and there is no record")
		case h.Oldest > first.At:
			a.Report("bound", a.OwnerName(o), "the oldest record was made at %d; the head says not before %d", first.At, h.Oldest)
		case h.Armed == 0 || h.Armed > max(due, a.Now): // what a step left over is due from then on
			a.Report("due", a.OwnerName(o), "pruning is due at %d and armed for %d", due, h.Armed)
		}
		return nil
	})
	if err == nil && len(oldest) > 0 {
		a.Report("due", "inbox", "%d owners of records have no head, so pruning is not armed", len(oldest))
	}
	return err
}

// orderOf is the record that a row of the order is of: its value is that one's key.
func orderOf(dst, _, value []byte) []byte { return append(dst, value...) }

func where(k *key) string {
	return fmt.Sprintf("owner %x/%d: %s, scope %q", k.Owner.Partition[:4], k.Owner.Resource, describe(k.Input), k.Scope)
}
