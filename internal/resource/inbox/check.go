package inbox

import (
	"fmt"

	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// check verifies that pruning of every owner of records is armed in time, and that
// every input has the form of its owner's. The prune order follows from the
// records.
func check(a *op.Audit) error {
	a.Derives(op.Derived{Table: order.Info()})
	oldest := map[table.Owner]int64{}
	err := op.Each(a, &processed, func(k key, v *record) error {
		a.Count("inboxRecords", 1)
		op.Imply(a, &order, orderKey{k.Owner, v.At, v.Position}, &k)
		if at, ok := oldest[k.Owner]; !ok || v.At < at {
			oldest[k.Owner] = v.At
		}
		if !wellFormed(k.Owner, k.Input) {
			a.Report("form", where(&k), "the input is none that its owner has")
		}
		a.Applied(where(&k), "its command", v.Position, v.Epoch)
		a.Past(where(&k), "its processing", v.At)
		return nil
	})
	if err != nil {
		return err
	}
	err = op.Each(a, &heads, func(o table.Owner, h *head) error {
		a.ImplyDue(table.DueInbox, o.Append(nil), h.Armed)
		at, ok := oldest[o]
		delete(oldest, o)
		switch {
		case !ok:
			a.Report("bound", a.OwnerName(o), "pruning is armed, and there is no record")
		case h.Oldest > at:
			a.Report("bound", a.OwnerName(o), "the oldest record was made at %d; the head says not before %d", at, h.Oldest)
		case h.Armed == 0 || h.Armed > max(at+horizonMillis, a.Now): // what a step left over is due from then on
			a.Report("due", a.OwnerName(o), "pruning is due at %d and armed for %d", at+horizonMillis, h.Armed)
		}
		return nil
	})
	if err == nil && len(oldest) > 0 {
		a.Report("due", "inbox", "%d owners of records have no head, so pruning is not armed", len(oldest))
	}
	return err
}

func where(k *key) string {
	return fmt.Sprintf("owner %x/%d: %s, scope %q", k.Owner.Partition[:4], k.Owner.Resource, describe(k.Input), k.Scope)
}
