package source

import (
	"bytes"
	"fmt"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// pins wants every pin at or above the cut, and at or above what the head
// remembers, else a cut could pass it.
func (x *auditor) pins(k Key, h *Head) error {
	if h.PinFloor > h.Tail {
		x.Report(sourcePins, name(k), "the lowest pin is remembered at %d, after the tail %d", h.PinFloor, h.Tail)
	}
	if h.Cut == 0 && h.PinFloor == 0 {
		return nil // no pin is below
	}
	pin, found, err := x.Registry.LowestPin(&x.Scope, k.Append(nil))
	if err != nil || !found {
		return err
	}
	if pin.Position < h.Cut {
		x.Report(sourcePins, name(k), "events up to %d were removed; %q has finished up to %d only", h.Cut, pin.Holder, pin.Position)
	}
	if pin.Position < h.PinFloor {
		x.Report(sourcePins, name(k), "the pin of %q at %d is below %d, the lowest the head remembers", pin.Holder, pin.Position, h.PinFloor)
	}
	return nil
}

// age wants a source whose events age to be armed for the end of its first event or
// earlier; later by heldMillis at most while a pin holds it. While the sources of
// its resource are being armed anew, it may not be so yet.
func (x *auditor) age(t *tally) error {
	k, h := t.key, &t.head
	r, err := x.definition(k)
	if err != nil || r == nil || r.Source == nil || r.Source.MaxAgeSeconds == 0 || h.Events() == 0 {
		return err
	}
	sweeping, err := sweeps.Has(x.R, sweepOwner(k.Owner))
	if err != nil || sweeping {
		return err
	}
	if t.first == (stamp{}) {
		return nil // the first event is missing, which was told
	}
	end := endOfLife(r, t.first.PublishedAt)
	if latest := max(end, x.Now+heldMillis); h.ArmedAge == 0 || h.ArmedAge > latest {
		x.Report(sourceAge, name(k), "armed for %d, the first event ends at %d", h.ArmedAge, end)
	}
	return nil
}

func sweepOwner(o table.Owner) table.Owner {
	return table.Owner{Space: table.Space{Shard: o.Shard}, Resource: o.Resource}
}

// sweeps wants every sweep to be due, and to go on among the sources of its shard.
func (x *auditor) sweeps() error {
	shard := codec.AppendUint16(nil, x.Space.Shard)
	return op.Each(x.Audit, &sweeps, func(o table.Owner, s *sweep) error {
		where := fmt.Sprintf("sweep of resource %d", o.Resource)
		if s.Armed == 0 || s.Armed > x.Now || s.Next == nil || o.Partition != [16]byte{} {
			x.Report(sourceAge, where, "a sweep is not armed, or has nothing to go on with, or is of one partition")
		}
		kr := codec.NewKeyReader(s.Next)
		if next := table.ReadOwner(&kr); s.Next != nil && (kr.Err() != nil || !bytes.HasPrefix(s.Next, shard) || next.Resource != o.Resource) {
			x.Report(sourceAge, where, "a sweep goes on at a source of another resource or shard")
		}
		x.ImplyDue(table.DueAge, o.Append(nil), s.Armed)
		return nil
	})
}
