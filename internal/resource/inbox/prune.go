package inbox

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

const horizonMillis = limits.InboxSeconds * 1000

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
	var rows []old
	next := int64(0)
	from := codec.AppendInt64(owner.Append(nil), h.Oldest)
	err = order.Scan(c.Tx, table.Range{Prefix: owner.Append(nil), From: from}, func(k orderKey, v *key) (bool, error) {
		if due := k.At + horizonMillis; due > c.Now || len(rows) == budget {
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
