package inbox

import (
	"fmt"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// check verifies that every record is in the prune order and the other way
// round, that pruning of every owner of records is armed, and that every input
// has the form of its owner's.
func check(a *op.Audit) error {
	all := table.Range{Prefix: codec.AppendUint16(nil, a.Space.Shard)}
	records := int64(0)
	err := processed.Scan(a.R, all, func(k key, v *record) (bool, error) {
		records++
		at, ok, err := order.Get(a.R, orderKey{k.Owner, v.At, v.Position})
		if err == nil && (!ok || at != k) {
			a.Report("index", where(&k), "the record is not in the prune order")
		}
		if !wellFormed(k.Owner, k.Input) {
			a.Report("form", where(&k), "the input is none that its owner has")
		}
		return true, err
	})
	if err != nil {
		return err
	}
	a.Count("inboxRecords", records)
	p, err := pruningOf(a.R, a.Space.Shard)
	if err != nil {
		return err
	}
	last := table.Owner{}
	return order.Scan(a.R, all, func(at orderKey, k *key) (bool, error) {
		records--
		v, ok, err := processed.Get(a.R, *k)
		if err != nil {
			return false, err
		}
		if !ok || v.At != at.At || v.Position != at.Position {
			a.Report("index", where(k), "the prune order names a record that is not there")
		}
		if at.Owner == last {
			return true, nil
		}
		last = at.Owner
		return true, armed(a, p, at)
	})
}

// armed looks for the due row of an owner, given its oldest record.
func armed(a *op.Audit, p pruning, oldest orderKey) error {
	h, _, err := heads.Get(a.R, oldest.Owner)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("owner %x/%d", oldest.Owner.Partition[:4], oldest.Owner.Resource)
	if h.Oldest > oldest.At {
		a.Report("bound", where, "the oldest record was made at %d; the head says not before %d", oldest.At, h.Oldest)
	}
	due := p.due(oldest.At, oldest.Position)
	if h.Armed == 0 || h.Armed > max(due, a.Now) { // what a step left over is due from then on
		a.Report("due", where, "pruning is due at %d and armed for %d", due, h.Armed)
		return nil
	}
	has, err := table.DueRows.Has(a.R, table.DueKey{Shard: oldest.Owner.Shard, When: h.Armed, Kind: table.DueInbox, Owner: string(oldest.Owner.Append(nil))})
	if err == nil && !has {
		a.Report("due", where, "pruning is armed for %d and has no due row", h.Armed)
	}
	return err
}

func where(k *key) string {
	return fmt.Sprintf("owner %x/%d: %s, scope %q", k.Owner.Partition[:4], k.Owner.Resource, describe(k.Input), k.Scope)
}
