package source

import (
	"errors"
	"fmt"

	"github.com/keyload/keyload/api"
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

// auditor reads every source of one shard in full. The rows of each table are read
// once, in the order in which the heads are.
type auditor struct {
	*op.Audit
	sources     map[string]*tally
	order       []*tally
	definitions map[uint32]*api.Resource
	last        *tally // of the row read last
}

// tally is what the rows of one source add up to.
type tally struct {
	key      Key
	head     Head
	bytes    []byte // of key
	want     uint64 // position of the event that is due
	size     uint64 // stored bytes of the events before it
	when     int64  // of the event before it
	first    stamp  // of the first retained event
	listed   uint64 // where the lists of purged ids end
	until    int64  // of the last list
	dueIDs   int64  // of the first list
	purged   op.Sum // ids and positions as the lists say
	recalled op.Sum // as the identities say
}

func check(a *op.Audit) error {
	x := &auditor{Audit: a, sources: map[string]*tally{}, definitions: map[uint32]*api.Resource{}}
	a.Derives(op.Derived{Table: identities.Info(), Invariant: sourceIDs, Skip: x.purgedIdentity, Subject: identityOf, Weigh: x.evidence})
	for _, step := range []func() error{x.heads, x.events, x.lists, x.identities, x.compare, x.sweeps} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (x *auditor) heads() error {
	return op.Each(x.Audit, &heads, func(k Key, h *Head) error {
		t := &tally{key: k, head: *h, bytes: k.Append(nil), want: h.Removed + 1, size: h.CutBytes, listed: h.Forgotten}
		x.sources[string(t.bytes)] = t
		x.order = append(x.order, t)
		x.Count("sources", 1)
		x.Count("events", int64(h.Events()))
		x.Count("eventBytes", int64(h.Bytes()))
		x.Count("purgedEventIds", int64(h.Cut-h.Forgotten))
		x.ImplyDue(table.DuePurge, t.bytes, h.ArmedPurge)
		x.ImplyDue(table.DuePurgedIDs, t.bytes, h.ArmedIDs)
		x.ImplyDue(table.DueAge, t.bytes, h.ArmedAge)
		return nil
	})
}

// of finds the source of a row; nil is reported.
func (x *auditor) of(k Key, what string) *tally {
	if x.last != nil && x.last.key == k {
		return x.last
	}
	t := x.sources[string(k.Append(nil))]
	if t == nil {
		x.Report(sourceOwner, name(k), "rows of table %s have no head", what)
		return nil
	}
	x.last = t
	return t
}

// name is a source in a finding.
func name(k Key) string {
	text := fmt.Sprintf("resource %d in partition %x", k.Owner.Resource, k.Owner.Partition)
	if k.StreamID != "" {
		text += fmt.Sprintf(", stream %q", k.StreamID)
	}
	return text + fmt.Sprintf(", generation %d", k.Generation)
}

// events reads the events Removed+1..Tail: no gap, the bytes before each are those
// of all before it, none is older than the one before it. Each implies its
// identity.
func (x *auditor) events() error {
	return x.EachRaw(events.Info(), func(key, row []byte) error {
		var e Record
		kr := codec.NewKeyReader(key[1:])
		k := readEventKey(&kr)
		if err := errors.Join(kr.End(), e.decode(row)); err != nil {
			return &table.Damage{Table: events.Name, Key: append([]byte(nil), key...), Cause: err}
		}
		t := x.of(k.Source, events.Name)
		if t == nil {
			return nil
		}
		where, h := func() string { return name(k.Source) }, &t.head
		if k.Position != t.want {
			x.Report(sourceEvents, where(), "position %d follows where %d should", k.Position, t.want)
		}
		if k.Position <= h.Cut && k.Position == h.Removed+1 {
			t.size = e.Before // nothing else says what is gone before a cut row
		}
		if e.Before != t.size || (k.Position == h.First() && e.Before != h.CutBytes) {
			x.Report(sourceEvents, where(), "position %d says %d bytes before it, counted %d, the head says %d before position %d",
				k.Position, e.Before, t.size, h.CutBytes, h.First())
		}
		if e.PublishedAt < t.when {
			x.Report(sourceEvents, where(), "position %d was published before the one before it", k.Position)
		}
		if x.Future(e.PublishedAt) {
			x.Past(where(), "a publication", e.PublishedAt)
		}
		if k.Position == h.First() {
			t.first = stamp{e.Before, e.PublishedAt}
		}
		t.size += uint64(len(key) + len(row))
		t.want, t.when = k.Position+1, e.PublishedAt
		content := row[len(appendRecordHead(nil, e.Before, string(e.ID), e.PublishedAt)):]
		op.Imply(x.Audit, &identities, idKey{k.Source, string(e.ID)}, &identity{digestOf(content), k.Position})
		return nil
	})
}

// compare verifies every head with what its rows add up to.
func (x *auditor) compare() error {
	for _, t := range x.order {
		x.marks(t)
		k, h := t.key, &t.head
		if h.Cut == h.Tail && h.CutBytes != h.TailBytes {
			x.Report(sourceEvents, name(k), "no event is retained, and they take %d bytes", h.Bytes())
		}
		if t.want != h.Tail+1 {
			x.Report(sourceEvents, name(k), "the last event is at %d, the head says %d", t.want-1, h.Tail)
		}
		if t.size != h.TailBytes {
			x.Report(sourceEvents, name(k), "events up to the tail take %d bytes, the head says %d", t.size, h.TailBytes)
		}
		if t.listed != h.Removed {
			x.Report(sourceIDs, name(k), "the lists of purged ids end at %d, the events begin after %d", t.listed, h.Removed)
		}
		if t.purged != t.recalled {
			x.Report(sourceIDs, name(k), "%d purged events are listed; %d identities are of purged events, or they are of other ids or positions",
				t.purged.Things(), t.recalled.Things())
		}
		if err := x.pins(k, h); err != nil {
			return err
		}
		if err := x.age(t); err != nil {
			return err
		}
	}
	return nil
}

// marks: the marks of a head are in order, and what waits is armed, in time.
func (x *auditor) marks(t *tally) {
	k, h := t.key, &t.head
	if h.Tail == 0 || h.Forgotten > h.Removed || h.Removed > h.Cut || h.Cut > h.Tail || h.CutBytes > h.TailBytes {
		x.Report(sourceMarks, name(k), "the marks are out of order: forgotten %d, removed %d, cut %d, tail %d, bytes %d of %d",
			h.Forgotten, h.Removed, h.Cut, h.Tail, h.CutBytes, h.TailBytes)
	}
	for _, d := range []struct {
		kind  table.DueKind
		armed int64
		waits bool
	}{
		{table.DuePurge, h.ArmedPurge, h.Removed < h.Cut},
		{table.DuePurgedIDs, h.ArmedIDs, h.Forgotten < h.Removed},
	} {
		if d.waits != (d.armed != 0) {
			x.Report(sourceMarks, name(k), "due kind %d: armed for %d while work waits is %t", d.kind, d.armed, d.waits)
		}
	}
	if t.dueIDs != 0 && h.ArmedIDs > max(t.dueIDs, x.Now) {
		x.Report(sourceMarks, name(k), "ids are to be forgotten from %d on, armed is %d", t.dueIDs, h.ArmedIDs)
	}
}

// definition is the definition of a source; nil when there is none.
func (x *auditor) definition(k Key) (*api.Resource, error) {
	r, ok := x.definitions[k.Owner.Resource]
	if ok {
		return r, nil
	}
	r, err := directory.ByID(x.R, k.Owner.Shard, k.Owner.Resource)
	if err == nil {
		x.definitions[k.Owner.Resource] = r
	}
	return r, err
}
