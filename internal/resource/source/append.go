package source

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/table"
)

// Appended says what Append stored.
type Appended struct {
	First, Last uint64
	IDs         []string // ids of the events in order; nil unless one was derived
}

// Append stores 1..256 events at the tail as the i-th mutation of the command,
// in order and all or none. Errors: RevisionConflict when the source is not as
// expected, PermissionDenied for a protected field, DuplicateEventId or Conflict
// for an event id that is taken, by the batch itself too, ResourceExhausted when
// the source is full and does not trim, or a pin keeps it from trimming
// (messaging §2).
func Append(c *op.Ctx, r *api.Resource, k Key, i int, expected api.ExpectedStream, list []api.Event) (Appended, error) {
	h, _, err := heads.Get(c.R, k)
	if err != nil {
		return Appended{}, err
	}
	if err := checkExpected(expected, h.Tail); err != nil {
		return Appended{}, err
	}
	for j := range list {
		if len(list[j].Payload) == 0 {
			continue
		}
		if err := access.CheckWrite(c.Principal, r, list[j].Payload); err != nil {
			return Appended{}, err
		}
	}
	w := newBatch(k, h, list)
	for j := range list {
		w.add(c, i, j, &list[j])
	}
	if err := w.checkIDs(c); err != nil {
		return Appended{}, err
	}
	room, err := makeRoom(c, r, k, &h, &w.head)
	if err != nil {
		return Appended{}, err
	}
	// From here on it succeeds.
	if room.through > h.Cut {
		w.head.cut(c, r, k, room.through, room.bytes, c.Now+trimRowsMillis)
	}
	if r.Source.MaxAgeSeconds > 0 && h.Events() == 0 {
		table.ArmBy(c.Tx, k.Owner.Shard, table.DueAge, k.Append(nil), &w.head.ArmedAge, endOfLife(r, c.Now))
	}
	w.write(c)
	c.Wake(WakeKey(k), len(list)) // for each group of it, and for every reader
	out := Appended{First: h.Tail + 1, Last: w.head.Tail}
	if w.derived {
		out.IDs = w.ids()
	}
	return out, nil
}

func checkExpected(e api.ExpectedStream, tail uint64) error {
	want := uint64(0)
	switch {
	case e.Any:
		return nil
	case e.Exact != nil:
		want = *e.Exact
	}
	if want == tail {
		return nil
	}
	detail := fault.New(fault.RevisionConflict, "stream_revision", "the stream is at position %d, not %d; read what was added and decide again", tail, want)
	if want == 0 {
		detail = fault.New(fault.RevisionConflict, "stream_exists", "the stream already has events, up to position %d", tail)
	}
	return detail.With("expected", "%d", want).With("tail", "%d", tail)
}

// planned is one event of a batch before anything is written.
type planned struct {
	id     string
	digest [digestBytes]byte
	record []byte
}

// batch prepares the rows of one append. The records of all events share one
// buffer, their identities another (they are looked up long after the records
// are on disk, and must not keep those in memory), and keys are built in place:
// a batch of a hundred events allocates little more than one of one.
type batch struct {
	source  Key
	head    Head // as it will be
	first   uint64
	derived bool // at least one id was
	events  []planned
	records []byte
	event   []byte // key of an event up to its position
	id      []byte // key of an identity up to the id
}

func newBatch(k Key, h Head, list []api.Event) *batch {
	size := 0
	for j := range list {
		size += recordBound(&list[j])
	}
	return &batch{
		source: k, head: h, first: h.Tail + 1,
		events:  make([]planned, 0, len(list)),
		records: make([]byte, 0, size),
		event:   k.Append(append(make([]byte, 0, keyBytes), byte(events.ID))),
		id:      k.Append(append(make([]byte, 0, keyBytes), byte(identities.ID))),
	}
}

// keyBytes holds most keys of events and identities.
const keyBytes = 160

// add encodes one event behind those before it.
func (w *batch) add(c *op.Ctx, i, j int, e *api.Event) {
	p := planned{id: e.EventID}
	if p.id == "" {
		p.id = c.DerivedID(i, j)
		w.derived = true
	}
	start := len(w.records)
	w.records = appendRecordHead(w.records, w.head.TailBytes, p.id, c.Now)
	content := len(w.records)
	w.records = appendContent(w.records, e)
	p.record = w.records[start:len(w.records):len(w.records)]
	p.digest = digestOf(w.records[content:])
	w.head.Tail++
	w.head.TailBytes += uint64(len(w.event) + 8 + len(p.record))
	w.events = append(w.events, p)
}

// checkIDs refuses the batch when an id of it is taken.
func (w *batch) checkIDs(c *op.Ctx) error {
	seen := make(map[string]int, len(w.events))
	for j := range w.events {
		p := &w.events[j]
		if first, again := seen[p.id]; again {
			return repeated(first, j, p, w.events[first].digest)
		}
		seen[p.id] = j
		key := append(w.id, p.id...)
		b, found, err := c.R.Get(key)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		var has identity
		if err := has.decode(b); err != nil {
			return &table.Damage{Table: identities.Name, Key: key, Cause: err}
		}
		return taken(j, p, &has)
	}
	return nil
}

// taken is the refusal of an event whose id has another position.
func taken(j int, p *planned, has *identity) error {
	if p.digest == has.Digest {
		return fault.New(fault.DuplicateEventID, "same_content",
			"event %d of the batch, id %q, is stored at position %d with the same content; nothing of the batch was stored", j, p.id, has.Position).
			With("eventId", "%s", p.id).With("index", "%d", j).With("position", "%d", has.Position)
	}
	return fault.New(fault.Conflict, "event_id_taken",
		"event %d of the batch has id %q, which belongs to an event with other content at position %d; nothing of the batch was stored", j, p.id, has.Position).
		With("eventId", "%s", p.id).With("index", "%d", j).With("position", "%d", has.Position)
}

// repeated is the refusal of an event whose id stands twice in its batch.
func repeated(first, j int, p *planned, digest [digestBytes]byte) error {
	code, what := fault.Conflict, "other"
	if p.digest == digest {
		code, what = fault.DuplicateEventID, "the same"
	}
	return fault.New(code, "repeated_in_batch",
		"events %d and %d of the batch have the same id %q, with %s content; nothing of the batch was stored", first, j, p.id, what).
		With("eventId", "%s", p.id).With("index", "%d", j)
}

// write stores the rows. Both keys of an event are known to be absent: its
// position is above the tail, and its id was looked up.
func (w *batch) write(c *op.Ctx) {
	rows := make([]byte, 0, len(w.events)*maxIdentityBytes)
	for j := range w.events {
		p := &w.events[j]
		row := identity{p.digest, w.first + uint64(j)}
		start := len(rows)
		rows = row.encode(rows)
		c.Tx.Insert(codec.AppendUint64(w.event, row.Position), p.record)
		c.Tx.Insert(append(w.id, p.id...), rows[start:len(rows):len(rows)])
	}
	heads.Put(c.Tx, w.source, &w.head)
}

func (w *batch) ids() []string {
	out := make([]string, len(w.events))
	for j := range w.events {
		out[j] = w.events[j].id
	}
	return out
}
