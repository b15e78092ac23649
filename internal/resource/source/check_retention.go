package source

import (
	"errors"
	"fmt"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// checkPins wants every pin at or above the cut, and at or above what the head
// remembers, else a cut could pass it.
func checkPins(a *op.Audit, k Key, h *Head) error {
	if h.PinFloor > h.Tail {
		a.Report(sourcePins, name(k), "the lowest pin is remembered at %d, after the tail %d", h.PinFloor, h.Tail)
	}
	pin, found, err := a.Registry.LowestPin(&a.Scope, k.Append(nil))
	if err != nil || !found {
		return err
	}
	if pin.Position < h.Cut {
		a.Report(sourcePins, name(k), "events up to %d were removed; %q has finished up to %d only", h.Cut, pin.Holder, pin.Position)
	}
	if pin.Position < h.PinFloor {
		a.Report(sourcePins, name(k), "the pin of %q at %d is below %d, the lowest the head remembers", pin.Holder, pin.Position, h.PinFloor)
	}
	return nil
}

// checkAge wants a source whose events age to be armed for the end of its first
// event or earlier; later by heldMillis at most while a pin holds it. While the
// sources of its resource are being armed anew, it may not be so yet.
func checkAge(a *op.Audit, k Key, h *Head) error {
	r, err := directory.ByID(a.R, k.Owner.Shard, k.Owner.Resource)
	if err != nil || r == nil || r.Source.MaxAgeSeconds == 0 || h.Events() == 0 {
		return err
	}
	sweeping, err := sweeps.Has(a.R, sweepOwner(k.Owner))
	if err != nil || sweeping {
		return err
	}
	first, err := stampAt(&a.Scope, k, h.First())
	if errors.Is(err, errMissing) {
		return nil // checkEvents tells of it
	}
	if err != nil {
		return err
	}
	if latest := max(endOfLife(r, first.PublishedAt), a.Now+heldMillis); h.ArmedAge == 0 || h.ArmedAge > latest {
		a.Report(sourceAge, name(k), "armed for %d, the first event ends at %d", h.ArmedAge, endOfLife(r, first.PublishedAt))
	}
	return nil
}

func sweepOwner(o table.Owner) table.Owner {
	return table.Owner{Space: table.Space{Shard: o.Shard}, Resource: o.Resource}
}

// checkSweeps wants a due row for every sweep.
func checkSweeps(a *op.Audit) error {
	return sweeps.Scan(a.R, table.Range{Prefix: shardPrefix(a)}, func(o table.Owner, s *sweep) (bool, error) {
		if s.Armed == 0 || s.Next == nil {
			a.Report(sourceAge, sweepName(o), "a sweep is not armed or has nothing to go on with")
		}
		return true, checkDue(a, sourceAge, sweepName(o), table.DueAge, s.Armed, o.Append(nil))
	})
}

func sweepName(o table.Owner) string { return fmt.Sprintf("sweep of resource %d", o.Resource) }

// checkSweepOf wants the sweep a due row belongs to.
func checkSweepOf(a *op.Audit, due table.DueKey) error {
	kr := codec.NewKeyReader([]byte(due.Owner))
	owner := table.ReadOwner(&kr)
	found, err := sweeps.Has(a.R, owner)
	if err == nil && !found {
		a.Report(sourceAge, sweepName(owner), "a due row at %d has no sweep", due.When)
	}
	return err
}
