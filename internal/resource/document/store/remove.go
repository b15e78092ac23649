package store

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// Dues are the kinds of due rows this package handles.
func Dues() []op.Due { return []op.Due{{Kind: table.DueTombstone, Apply: sweep}} }

// sweep is the handler of table.DueTombstone: it removes tombstones whose
// retention is over, deleting at most budget rows, and arms the next instant. A
// policy that keeps them longer than when they were armed is followed; one that
// keeps them shorter takes effect with the next deletion.
func sweep(x *op.Ctx, owner []byte, budget int) error {
	kr := codec.NewKeyReader(owner)
	o := table.ReadOwner(&kr)
	if err := kr.End(); err != nil {
		return err
	}
	h, ok, err := heads.Get(x.Tx, o)
	if err != nil || !ok {
		return err
	}
	h.Armed = 0
	def, err := directory.ByID(x.Tx, o.Shard, o.Resource)
	if err != nil {
		return err
	}
	var over []tombstoneKey
	if def != nil { // otherwise Purge is about to remove everything
		next := int64(0)
		err = tombstones.Scan(x.Tx, table.Range{Prefix: o.Append(nil)}, func(k tombstoneKey, _ *table.None) (bool, error) {
			if at := removedAt(def, k.DeletedAt); at > x.Now || len(over) >= max(budget/2, 1) {
				next = at
				return false, nil
			}
			over = append(over, k)
			return true, nil
		})
		if err != nil {
			return err
		}
		table.Arm(x.Tx, o.Shard, table.DueTombstone, owner, &h.Armed, next)
	}
	for _, k := range over {
		documents.Delete(x.Tx, documentKey{o, k.ID})
		tombstones.Delete(x.Tx, k)
	}
	h.Tombstones -= uint64(len(over))
	if h == (Head{}) {
		heads.Delete(x.Tx, o)
	} else {
		heads.Put(x.Tx, o, &h)
	}
	return nil
}

// Purge removes at most budget rows of a deleted collection in one partition.
// Less than budget means that none is left; a step that bytes ended answers the
// whole budget.
func Purge(x *op.Ctx, o table.Owner, budget int) (int, error) {
	removed := 0
	h, ok, err := heads.Get(x.Tx, o)
	if err != nil {
		return 0, err
	}
	if ok && budget > 0 {
		table.Arm(x.Tx, o.Shard, table.DueTombstone, o.Append(nil), &h.Armed, 0)
		heads.Delete(x.Tx, o)
		removed++
	}
	for _, id := range []table.ID{entries.ID, uniques.ID, tombstones.ID, documents.ID} {
		n, next, err := table.RemoveSome(x.Tx, o.Append([]byte{byte(id)}), nil, budget-removed)
		if err != nil {
			return removed, err
		}
		if removed += n; next != nil {
			return budget, nil
		}
	}
	return removed, nil
}
