package inbox

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/lineage"
	"github.com/keyload/keyload/internal/table"
)

const horizonMillis = limits.InboxSeconds * 1000

// pruning says when the records of a shard are forgotten.
type pruning struct {
	last     uint64 // records up to this position came back with a restore
	restored int64  // which was then, milliseconds
}

// pruningOf reads it once for many records.
func pruningOf(r kv.Reader, shard uint16) (pruning, error) {
	latest, err := lineage.Latest(r, shard, 1)
	if err != nil || len(latest) == 0 {
		return pruning{}, err
	}
	return pruning{latest[0].Last, latest[0].At}, nil
}

// due is when a record is forgotten: the horizon after it was made, or after it
// came back with a restore. What a restored group is moved back to is thus known
// as processed, however old the backup is. It never falls as records get younger.
func (p pruning) due(at int64, position uint64) int64 {
	if position <= p.last {
		at = max(at, p.restored)
	}
	return at + horizonMillis
}

// arm makes sure that pruning of the owner's records is armed, by the oldest.
func arm(c *op.Ctx, owner table.Owner) error {
	h, err := heads.Shared(c.Tx, owner)
	if err != nil || (h != nil && h.Armed != 0) {
		return err
	}
	armed := head{Oldest: c.Now}
	table.ArmBy(c.Tx, owner.Shard, table.DueInbox, owner.Append(nil), &armed.Armed, c.Now+horizonMillis)
	heads.Put(c.Tx, owner, &armed)
	return nil
}

// prune forgets at most budget records past the horizon and arms the next
// instant. It goes on after the owner is deleted, until nothing is left.
func prune(c *op.Ctx, ownerKey []byte, budget int) error {
	kr := codec.NewKeyReader(ownerKey)
	owner := table.ReadOwner(&kr)
	if err := kr.End(); err != nil {
		return err
	}
	h, _, err := heads.Get(c.Tx, owner)
	if err != nil {
		return err
	}
	type old struct {
		at   orderKey
		what key
	}
	p, err := pruningOf(c.Tx, owner.Shard)
	if err != nil {
		return err
	}
	var rows []old
	next := int64(0)
	from := codec.AppendInt64(owner.Append(nil), h.Oldest)
	err = order.Scan(c.Tx, table.Range{Prefix: owner.Append(nil), From: from}, func(k orderKey, v *key) (bool, error) {
		if due := p.due(k.At, k.Position); due > c.Now || len(rows) == budget {
			next, h.Oldest = max(due, c.Now), k.At
			return false, nil
		}
		rows = append(rows, old{k, *v})
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		processed.Delete(c.Tx, r.what)
		order.Delete(c.Tx, r.at)
	}
	if next == 0 {
		heads.Delete(c.Tx, owner)
		return nil
	}
	h.Armed = 0
	table.Arm(c.Tx, owner.Shard, table.DueInbox, ownerKey, &h.Armed, next)
	heads.Put(c.Tx, owner, &h)
	return nil
}
