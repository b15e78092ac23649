package source

import (
	"errors"
	"fmt"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// The invariants this package answers for.
const (
	sourceMarks  = "source-marks"  // the marks of a head are in order, and what waits is armed
	sourceEvents = "source-events" // events are without gaps and the counters equal a full scan
	sourceIDs    = "source-ids"    // an identity exists exactly for the events and purged events it should
	sourceOwner  = "source-owner"  // every row belongs to a source that exists
	sourcePins   = "source-pins"   // nothing was cut that a pin holds, and no pin is below what the head remembers
	sourceAge    = "source-age"    // a source whose events age is armed in time
)

// check reads every source of one shard in full.
func check(a *op.Audit) error {
	type row struct {
		key  Key
		head Head
	}
	var sources []row
	err := heads.Scan(a.R, table.Range{Prefix: shardPrefix(a)}, func(k Key, h *Head) (bool, error) {
		sources = append(sources, row{k, *h})
		return true, nil
	})
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(sources))
	for i := range sources {
		s := &sources[i]
		known[string(s.key.Append(nil))] = true
		checkMarks(a, s.key, &s.head)
		for _, f := range []func(*op.Audit, Key, *Head) error{checkArmed, checkEvents, checkIdentities, checkPins, checkAge} {
			if err := f(a, s.key, &s.head); err != nil {
				return err
			}
		}
		a.Count("sources", 1)
		a.Count("events", int64(s.head.Events()))
		a.Count("eventBytes", int64(s.head.Bytes()))
		a.Count("purgedEventIds", int64(s.head.Cut-s.head.Forgotten))
	}
	if err := checkSweeps(a); err != nil {
		return err
	}
	return checkOwners(a, known)
}

func shardPrefix(a *op.Audit) []byte { return codec.AppendUint16(nil, a.Space.Shard) }

// name is a source in a finding.
func name(k Key) string {
	text := fmt.Sprintf("resource %d in partition %x", k.Owner.Resource, k.Owner.Partition)
	if k.StreamID != "" {
		text += fmt.Sprintf(", stream %q", k.StreamID)
	}
	return text + fmt.Sprintf(", generation %d", k.Generation)
}

func checkMarks(a *op.Audit, k Key, h *Head) {
	if h.Forgotten > h.Removed || h.Removed > h.Cut || h.Cut > h.Tail || h.CutBytes > h.TailBytes {
		a.Report(sourceMarks, name(k), "the marks are out of order: forgotten %d, removed %d, cut %d, tail %d, bytes %d of %d",
			h.Forgotten, h.Removed, h.Cut, h.Tail, h.CutBytes, h.TailBytes)
	}
}

// checkArmed wants a due row exactly where something waits.
func checkArmed(a *op.Audit, k Key, h *Head) error {
	for _, d := range []struct {
		kind  table.DueKind
		armed int64
		waits bool
	}{
		{table.DuePurge, h.ArmedPurge, h.Removed < h.Cut},
		{table.DuePurgedIDs, h.ArmedIDs, h.Forgotten < h.Removed},
		{table.DueAge, h.ArmedAge, h.ArmedAge != 0}, // checkAge knows what waits
	} {
		if d.waits != (d.armed != 0) {
			a.Report(sourceMarks, name(k), "due kind %d: armed for %d while work waits is %t", d.kind, d.armed, d.waits)
		}
		if err := checkDue(a, sourceMarks, name(k), d.kind, d.armed, k.Append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// checkDue wants the due row of what is armed.
func checkDue(a *op.Audit, invariant, where string, kind table.DueKind, armed int64, owner []byte) error {
	if armed == 0 {
		return nil
	}
	due, err := table.DueRows.Has(a.R, table.DueKey{Shard: a.Space.Shard, When: armed, Kind: kind, Owner: string(owner)})
	if err == nil && !due {
		a.Report(invariant, where, "due kind %d is armed for %d and has no due row", kind, armed)
	}
	return err
}

// checkEvents reads the events Removed+1..Tail: no gap, the bytes before each
// are those of all before it, and each has its identity.
func checkEvents(a *op.Audit, k Key, h *Head) error {
	lower := k.Append([]byte{byte(events.ID)})
	n := len(lower)
	want, bytes := h.Removed+1, h.CutBytes
	err := a.R.Scan(lower, codec.PrefixEnd(lower), false, func(key, row []byte) (bool, error) {
		var e Record
		kr := codec.NewKeyReader(key[n:])
		position := kr.Uint64()
		if err := errors.Join(kr.End(), e.decode(row)); err != nil {
			return false, damaged(key, err)
		}
		if position != want {
			a.Report(sourceEvents, name(k), "position %d follows where %d should", position, want)
		}
		if position <= h.Cut && position == h.Removed+1 {
			bytes = e.Before // nothing else says what is gone before a cut row
		}
		if e.Before != bytes || (position == h.First() && e.Before != h.CutBytes) {
			a.Report(sourceEvents, name(k), "position %d says %d bytes before it, counted %d, the head says %d before position %d",
				position, e.Before, bytes, h.CutBytes, h.First())
		}
		bytes += uint64(len(key) + len(row))
		want = position + 1
		content := row[len(appendRecordHead(nil, e.Before, string(e.ID), e.PublishedAt)):]
		digest := digestOf(content)
		return true, checkIdentity(a, k, string(e.ID), position, &digest)
	})
	if err != nil {
		return err
	}
	if want != h.Tail+1 {
		a.Report(sourceEvents, name(k), "the last event is at %d, the head says %d", want-1, h.Tail)
	}
	if bytes != h.TailBytes {
		a.Report(sourceEvents, name(k), "events up to the tail take %d bytes, the head says %d", bytes, h.TailBytes)
	}
	return nil
}

// checkIdentity wants the identity of an event; the digest is nil when the event
// is gone.
func checkIdentity(a *op.Audit, k Key, id string, position uint64, digest *[digestBytes]byte) error {
	has, found, err := identities.Get(a.R, idKey{k, id})
	if err != nil {
		return err
	}
	switch {
	case !found:
		a.Report(sourceIDs, name(k), "the event at %d has no identity", position)
	case has.Position != position:
		a.Report(sourceIDs, name(k), "the identity of the event at %d says %d", position, has.Position)
	case digest != nil && has.Digest != *digest:
		a.Report(sourceIDs, name(k), "the identity of the event at %d has the digest of another content", position)
	}
	return nil
}

// checkIdentities reads the lists of purged ids and counts the identities. Every
// event and every listed id has one of its own position, so when the number
// agrees, there is no other.
func checkIdentities(a *op.Audit, k Key, h *Head) error {
	end := h.Forgotten
	err := purgedIDs.Scan(a.R, table.Range{Prefix: k.Append(nil)}, func(key eventKey, l *idList) (bool, error) {
		if n := uint64(len(l.IDs)); n == 0 || key.Position-n != end {
			a.Report(sourceIDs, name(k), "the list of %d ids that ends at %d does not follow position %d", n, key.Position, end)
		}
		if l.Until > h.KeepIDsUntil {
			a.Report(sourceIDs, name(k), "the list that ends at %d is kept until %d, the head says %d", key.Position, l.Until, h.KeepIDsUntil)
		}
		end = key.Position
		for i, id := range l.IDs {
			if err := checkIdentity(a, k, id, end-uint64(len(l.IDs)-1-i), nil); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if end != h.Removed {
		a.Report(sourceIDs, name(k), "the lists of purged ids end at %d, the events begin after %d", end, h.Removed)
	}
	var n uint64
	err = identities.Scan(a.R, table.Range{Prefix: k.Append(nil)}, func(idKey, *identity) (bool, error) {
		n++
		return true, nil
	})
	if want := h.Tail - h.Forgotten; err == nil && n != want {
		a.Report(sourceIDs, name(k), "%d identities are stored, %d positions have one", n, want)
	}
	return err
}

// checkOwners finds rows whose source has no head. Those of a deleted resource,
// whose heads go first, are counted; every other source is reported once a table.
func checkOwners(a *op.Audit, known map[string]bool) error {
	for _, t := range []table.Info{events.Info(), identities.Info(), purgedIDs.Info()} {
		prefix := append([]byte{byte(t.ID)}, shardPrefix(a)...)
		var last string
		err := a.R.Scan(prefix, codec.PrefixEnd(prefix), false, func(key, _ []byte) (bool, error) {
			r := codec.NewKeyReader(key[1:])
			k := ReadKey(&r)
			if r.Err() != nil {
				return false, &table.Damage{Table: t.Name, Key: append([]byte(nil), key...), Cause: r.Err()}
			}
			source := string(k.Append(nil))
			if known[source] || source == last {
				return true, nil
			}
			last = source
			return true, checkOrphan(a, k, t.Name)
		})
		if err != nil {
			return err
		}
	}
	return checkDueOwners(a, known)
}

func checkOrphan(a *op.Audit, k Key, tableName string) error {
	r, err := directory.ByID(a.R, k.Owner.Shard, k.Owner.Resource)
	if err == nil && r == nil {
		a.Count("deletedSources", 1)
	} else if err == nil {
		a.Report(sourceOwner, name(k), "rows of table %s have no head", tableName)
	}
	return err
}

// checkDueOwners finds due rows of this package whose source has no head.
func checkDueOwners(a *op.Audit, known map[string]bool) error {
	return table.DueRows.Scan(a.R, table.Range{Prefix: shardPrefix(a)}, func(k table.DueKey, _ *table.None) (bool, error) {
		ours := k.Kind == table.DuePurge || k.Kind == table.DuePurgedIDs || k.Kind == table.DueAge
		if !ours || known[k.Owner] {
			return true, nil
		}
		if k.Kind == table.DueAge && len(k.Owner) == table.OwnerBytes {
			return true, checkSweepOf(a, k)
		}
		a.Report(sourceOwner, fmt.Sprintf("due kind %d at %d", k.Kind, k.When), "a due row has no source")
		return true, nil
	})
}
