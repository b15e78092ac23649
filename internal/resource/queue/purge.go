package queue

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// purge removes at most budget rows of one lane of a deleted queue. The head
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
		keys, err := keysOf(c, t.ID, owner, budget-removed)
		if err != nil {
			return removed, err
		}
		for _, k := range keys {
			c.Tx.Delete(k)
		}
		removed += len(keys)
	}
	return removed, nil
}

// keysOf lists at most limit keys of one lane in one table.
func keysOf(c *op.Ctx, id table.ID, owner table.Owner, limit int) (keys [][]byte, err error) {
	if limit <= 0 {
		return nil, nil
	}
	lower := owner.Append([]byte{byte(id)})
	err = c.Tx.Scan(lower, codec.PrefixEnd(lower), false, func(key, _ []byte) (bool, error) {
		keys = append(keys, append([]byte(nil), key...))
		return len(keys) < limit, nil
	})
	return keys, err
}
