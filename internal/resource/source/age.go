package source

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// Events whose age has passed are cut without anybody's traffic. A source with
// an age is armed for the end of its first event, or earlier: what moved the end
// away since is seen when the instant comes. Only an age that is set or lowered
// moves ends nearer; then each shard arms the sources of the resource anew, in
// bounded steps.

// heldMillis is the wait after a pin has kept events past their age. Reading the
// pins costs a row for each group, and an acknowledgement does not tell the
// source; a minute more of storage is cheaper than either.
const heldMillis = 60_000

// endOfLife is the instant from which on an event is past its age.
func endOfLife(r *api.Resource, publishedAt int64) int64 {
	return saturatedTime(publishedAt, r.Source.MaxAgeSeconds)
}

// applyAge is the due handler. The owner is a source, or a whole resource, in
// the zero partition, whose sources are armed anew.
func applyAge(c *op.Ctx, owner []byte, budget int) error {
	if len(owner) == table.OwnerBytes {
		return goOn(c, owner, max(budget, 1))
	}
	k, h, ok, err := dueHead(c, owner)
	if err != nil || !ok {
		return err
	}
	r, err := directory.ByID(c.R, k.Owner.Shard, k.Owner.Resource)
	if err != nil {
		return err
	}
	h.ArmedAge = 0
	if r != nil && r.Source.MaxAgeSeconds > 0 && h.Events() > 0 {
		if err := cutAged(c, r, k, &h); err != nil {
			return err
		}
	}
	heads.Put(c.Tx, k, &h)
	return nil
}

// cutAged cuts the events past their age, at most up to the lowest pin, and arms
// the next instant. Logged time never goes back, so they are the first ones; how
// many there are costs no more than a search (their rows go in bounded steps).
func cutAged(c *op.Ctx, r *api.Resource, k Key, h *Head) error {
	last, next, err := lastPassing(&c.Scope, k, h.Cut, h.Tail, func(at stamp) bool {
		return endOfLife(r, at.PublishedAt) <= c.Now
	})
	if err != nil {
		return err
	}
	when := int64(0)
	if last < h.Tail {
		when = endOfLife(r, next.PublishedAt)
	}
	through, bytes := last, h.TailBytes
	if last < h.Tail {
		bytes = next.Before
	}
	if last > h.Cut {
		pin, err := held(&c.Scope, k, h, last)
		if err != nil {
			return err
		}
		if pin != nil {
			when, through = c.Now+heldMillis, pin.Position
			if bytes, err = bytesThrough(&c.Scope, k, h, through); err != nil {
				return err
			}
		}
	}
	if through > h.Cut {
		h.cut(c, r, k, through, bytes, c.Now)
	}
	arm(c, k, table.DueAge, &h.ArmedAge, when)
	return nil
}

// sweep is how far a shard has armed the sources of a resource anew.
type sweep struct {
	Next  []byte `cbor:"1,keyasint"` // key parts of the source to go on with
	Armed int64  `cbor:"2,keyasint"`
}

// sweeps holds a row for a resource while its sources are armed anew. It belongs
// to the shard, so it stands in the zero partition.
var sweeps = table.Table[table.Owner, sweep]{
	ID: table.AgeSweep, Name: "ageSweep",
	Key:      func(dst []byte, o table.Owner) []byte { return o.Append(dst) },
	ParseKey: table.ReadOwner,
	Encode:   table.EncodeCBOR[sweep], Decode: table.DecodeCBOR[sweep],
}

// ageChanged begins a sweep when an age was set or lowered; one under way begins
// anew.
func ageChanged(c *op.Ctx, old, now *api.Resource) error {
	was, is := old.Source.MaxAgeSeconds, now.Source.MaxAgeSeconds
	if is == 0 || (was != 0 && is >= was) {
		return nil
	}
	owner := table.Owner{Space: c.ShardSpace(), Resource: now.ID}
	s, _, err := sweeps.Get(c.R, owner)
	if err != nil {
		return err
	}
	s.Next = owner.Append(nil)
	table.ArmBy(c.Tx, owner.Shard, table.DueAge, owner.Append(nil), &s.Armed, c.Now)
	sweeps.Put(c.Tx, owner, &s)
	return nil
}

// goOn is one step of a sweep: it looks at no more than budget sources and
// partitions together.
func goOn(c *op.Ctx, ownerKey []byte, budget int) error {
	kr := codec.NewKeyReader(ownerKey)
	owner := table.ReadOwner(&kr)
	if err := kr.End(); err != nil {
		return badOwner(ownerKey, err)
	}
	s, ok, err := sweeps.Get(c.R, owner)
	if err != nil || !ok {
		return err
	}
	r, err := directory.ByID(c.R, owner.Shard, owner.Resource)
	if err != nil {
		return err
	}
	if r == nil || r.Source.MaxAgeSeconds == 0 { // deleted, or nothing ages any more
		s.Next = nil
	}
	for budget > 0 && s.Next != nil {
		var found []Key
		if found, s.Next, err = sourcesFrom(c, r.ID, s.Next, budget); err != nil {
			return err
		}
		for _, k := range found {
			if err := armAnew(c, r, k); err != nil {
				return err
			}
		}
		budget -= len(found) + 1
	}
	s.Armed = 0
	if s.Next == nil {
		sweeps.Delete(c.Tx, owner)
		return nil
	}
	table.Arm(c.Tx, owner.Shard, table.DueAge, ownerKey, &s.Armed, c.Now)
	sweeps.Put(c.Tx, owner, &s)
	return nil
}

// armAnew makes sure that a source is armed for the end of its first event.
func armAnew(c *op.Ctx, r *api.Resource, k Key) error {
	h, _, err := heads.Get(c.R, k)
	if err != nil || h.Events() == 0 {
		return err
	}
	first, err := stampAt(&c.Scope, k, h.First())
	if err != nil {
		return err
	}
	armed := h.ArmedAge
	table.ArmBy(c.Tx, k.Owner.Shard, table.DueAge, k.Append(nil), &h.ArmedAge, endOfLife(r, first.PublishedAt))
	if h.ArmedAge != armed {
		heads.Put(c.Tx, k, &h)
	}
	return nil
}

// sourcesFrom lists sources of a resource in one partition, at most limit, from
// a place in the order of keys on. next is where to go on; nil is the end. Sources
// of other resources are passed over by their keys, not one by one.
func sourcesFrom(c *op.Ctx, resource uint32, from []byte, limit int) (found []Key, next []byte, err error) {
	rg := table.Range{Prefix: codec.AppendUint16(nil, c.Space.Shard), From: from}
	err = heads.Scan(c.R, rg, func(k Key, _ *Head) (bool, error) {
		o := k.Owner
		switch {
		case o.Resource == resource && len(found) < limit && (len(found) == 0 || o == found[0].Owner):
			found = append(found, k)
			return true, nil
		case o.Resource == resource:
			next = k.Append(nil)
		case o.Resource < resource:
			next = table.Owner{Space: o.Space, Resource: resource}.Append(nil)
		case nextPartition(&o.Space):
			next = table.Owner{Space: o.Space, Resource: resource}.Append(nil)
		}
		return false, nil
	})
	return found, next, err
}

// nextPartition moves to the partition hash after this one; false after the last.
func nextPartition(s *table.Space) bool {
	for i := len(s.Partition) - 1; i >= 0; i-- {
		if s.Partition[i]++; s.Partition[i] != 0 {
			return true
		}
	}
	return false
}
