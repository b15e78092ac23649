package queue

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// applyDue does what time has brought about in one lane, at most budget
// messages of each kind, and arms the next instant.
func applyDue(c *op.Ctx, ownerKey []byte, budget int) error {
	r := codec.NewKeyReader(ownerKey)
	owner := table.ReadOwner(&r)
	if err := r.End(); err != nil {
		return err
	}
	res, err := directory.ByID(c.Tx, owner.Shard, owner.Resource)
	if err != nil {
		return err
	}
	if res == nil { // deleted for good; one that is only frozen goes on
		return disarm(c, owner)
	}
	l, err := openOwner(c, res, owner)
	if err != nil {
		return err
	}
	l.head.Armed = 0
	if _, err := loseLeases(l, budget); err != nil {
		return err
	}
	if _, err := expireDue(l, budget); err != nil {
		return err
	}
	if _, err := promote(l, budget); err != nil {
		return err
	}
	if _, err := prune(l, budget); err != nil {
		return err
	}
	if err := admitDead(l, budget); err != nil {
		return err
	}
	return l.close()
}

// disarm remembers that the due row of a lane is gone: its queue was deleted,
// and nothing of it happens any more.
func disarm(c *op.Ctx, owner table.Owner) error {
	h, ok, err := heads.Get(c.Tx, owner)
	if err != nil || !ok {
		return err
	}
	h.Armed = 0
	heads.Put(c.Tx, owner, &h)
	return nil
}
