package op

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

// What the packages that keep rows of one kind of resource do together. Those
// above know nothing of those below: a source asks here who needs its events.

// Pin says that the events of a source after Position must stay for its holder.
type Pin struct {
	Holder   string // name of a group
	Position uint64 // its checkpoint
}

// Keepers are the packages that keep rows of a kind, in the registry's order.
func (r *Registry) Keepers(k api.ResourceKind) []*Resource { return r.kinds[k] }

// LowestPin finds the pin of a source with the lowest position; of equal ones
// that whose holder's name is first. It visits every pin.
func (r *Registry) LowestPin(s *Scope, source []byte) (lowest Pin, found bool, err error) {
	for i := range r.resources {
		pins := r.resources[i].Pins
		if pins == nil {
			continue
		}
		err := pins(s, source, func(p Pin) (bool, error) {
			if !found || p.Position < lowest.Position || (p.Position == lowest.Position && p.Holder < lowest.Holder) {
				lowest, found = p, true
			}
			return true, nil
		})
		if err != nil {
			return Pin{}, false, err
		}
	}
	return lowest, found, nil
}

// Purge removes at most budget rows of one deleted resource in one partition,
// package by package; fewer means that none is left.
func (r *Registry) Purge(c *Ctx, k api.ResourceKind, owner table.Owner, budget int) (removed int, err error) {
	for _, res := range r.kinds[k] {
		if removed >= budget {
			break
		}
		n, err := res.Purge(c, owner, budget-removed)
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}

// Changed tells every package that keeps rows of the resource's kind that its
// definition was replaced.
func (r *Registry) Changed(c *Ctx, old, now *api.Resource) error {
	for _, res := range r.kinds[now.Kind] {
		if res.Changed == nil {
			continue
		}
		if err := res.Changed(c, old, now); err != nil {
			return err
		}
	}
	return nil
}

// Holds says whether a resource of a kind has any row in one partition.
func (r *Registry) Holds(rd kv.Reader, k api.ResourceKind, owner table.Owner) (bool, error) {
	for _, res := range r.kinds[k] {
		for _, t := range res.Tables {
			prefix := owner.Append([]byte{byte(t.ID)})
			found := false
			err := rd.Scan(prefix, codec.PrefixEnd(prefix), false, func(_, _ []byte) (bool, error) {
				found = true
				return false, nil
			})
			if found || err != nil {
				return found, err
			}
		}
	}
	return false, nil
}
