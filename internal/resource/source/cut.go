package source

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Three things cut the head of a source: a purge, an append that trims, and the
// age of events. Each moves the head and no more, and none passes a pin: what a
// group has not finished stays.

// cut removes the events up to a position, before which there are bytes: reads
// end there and the room is free at once. Rows go in due steps from an instant
// on.
func (h *Head) cut(c *op.Ctx, r *api.Resource, k Key, through, bytes uint64, rowsFrom int64) {
	h.Cut, h.CutBytes = through, bytes
	h.KeepIDsUntil = max(h.KeepIDsUntil, saturatedTime(c.Now, r.Source.EventIDRetentionSeconds))
	table.ArmBy(c.Tx, k.Owner.Shard, table.DuePurge, k.Append(nil), &h.ArmedPurge, rowsFrom)
}

// held finds the pin that keeps the events up to a position from being removed;
// nil when none does. The lowest pin last seen is remembered in the head: pins
// only move forward but for Repin, so up to there nothing need be asked. Without
// any pin the tail is remembered, so a source that is trimmed all the time asks
// once for as many events as it retains.
func held(s *op.Scope, k Key, h *Head, through uint64) (*op.Pin, error) {
	if through <= h.PinFloor {
		return nil, nil
	}
	pin, found, err := s.Registry.LowestPin(s, k.Append(nil))
	if err != nil {
		return nil, err
	}
	h.PinFloor = h.Tail
	if found {
		h.PinFloor = min(pin.Position, h.Tail)
	}
	if h.PinFloor < through {
		return &pin, nil
	}
	return nil, nil
}

// Repin forgets the lowest pin last seen. Who keeps pins calls it whenever one
// appears, moves back or goes away, in the same command: a pin below what the
// head remembers would not be asked for.
func Repin(c *op.Ctx, k Key) error {
	h, ok, err := heads.Get(c.R, k)
	if err != nil || !ok || h.PinFloor == 0 {
		return err
	}
	h.PinFloor = 0
	heads.Put(c.Tx, k, &h)
	return nil
}

// Behind is what a source retains after a position: the events a pin there holds
// back, and their stored bytes. It reads at most one event.
func Behind(s *op.Scope, k Key, h *Head, position uint64) (events, bytes uint64, err error) {
	before, err := bytesThrough(s, k, h, position)
	if err != nil {
		return 0, 0, err
	}
	return h.Tail - min(max(position, h.Cut), h.Tail), h.TailBytes - before, nil
}

// bytesThrough is the stored bytes of the events up to a position, those that
// were cut included.
func bytesThrough(s *op.Scope, k Key, h *Head, position uint64) (uint64, error) {
	switch {
	case position <= h.Cut:
		return h.CutBytes, nil
	case position >= h.Tail:
		return h.TailBytes, nil
	}
	next, err := stampAt(s, k, position+1)
	return next.Before, err
}

// lastPassing finds the last event for which pass holds, of those after known up
// to the tail; pass holds for the first so many of them and known itself is not
// asked. It is known when pass holds for none. next is of the event after it,
// zero when that is the tail. It reads at most twice the logarithm of how many
// events pass, and two more.
func lastPassing(s *op.Scope, k Key, known, tail uint64, pass func(stamp) bool) (last uint64, next stamp, err error) {
	failing := tail + 1
	probe := func(position uint64) error {
		at, err := stampAt(s, k, position)
		switch {
		case err != nil:
			return err
		case pass(at):
			known = position
		default:
			failing, next = position, at
		}
		return nil
	}
	for step := uint64(1); known < tail && failing > tail; step *= 2 {
		if err := probe(min(known+step, tail)); err != nil {
			return 0, stamp{}, err
		}
	}
	for failing-known > 1 {
		if err := probe(known + (failing-known)/2); err != nil {
			return 0, stamp{}, err
		}
	}
	return known, next, nil
}

// stampAt reads the front of an event that is known to be there.
func stampAt(s *op.Scope, k Key, position uint64) (at stamp, err error) {
	key := events.Bytes(eventKey{k, position})
	row, ok, err := s.R.Get(key)
	switch {
	case err != nil:
		return at, err
	case !ok:
		return at, missing(k, position)
	}
	if err := at.decode(row); err != nil {
		return at, damaged(key, err)
	}
	return at, nil
}

// pinned is the refusal to remove the events up to a position: who holds them
// back, how much that is, and what to do. why begins the sentence, instead ends it.
func pinned(s *op.Scope, r *api.Resource, k Key, h *Head, pin *op.Pin, through uint64, why, instead string) error {
	events, bytes, err := Behind(s, k, h, pin.Position)
	if err != nil {
		return err
	}
	return fault.New(fault.ResourceExhausted, "retention_pin",
		"%s; group %q has finished %s %q up to position %d only and holds back %d events (%d bytes); let the group go on, seek it forward or delete it%s",
		why, pin.Holder, r.Kind, r.Name, pin.Position, events, bytes, instead).
		With("holder", "%s", pin.Holder).With("checkpoint", "%d", pin.Position).With("throughPosition", "%d", through).
		With("heldEvents", "%d", events).With("heldBytes", "%d", bytes)
}
