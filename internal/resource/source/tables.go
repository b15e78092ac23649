package source

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// What each operation costs, in rows:
//
//	append of n events  reads 1 head (in memory) and n identities;
//	                    writes n events, n identities, 1 head; with an age and
//	                    the source empty, 1 due row
//	trim of n events    in such an append: reads at most 2·log₂ n + 3 events and, now
//	                    and then (below), every pin; writes ≤ 1 due row
//	page of n events    reads 1 head; looks at n events, one more when bytes end it
//	purge               reads 1 head, the event after the cut and, unless the head
//	                    knows better, every pin; writes 1 head and at most 1 due row
//	age of n events     reads 1 head and at most 2·log₂ n + 3 events, pins like a
//	                    purge; writes 1 head and ≤ 2 due rows; once a minute while
//	                    a pin is in the way
//	age lowered         writes 1 sweep, 1 due row; its steps look at 256 sources each
//	removal step of n   reads 1 head, looks at n events;
//	                    deletes n events, writes ⌈n/256⌉ id lists, 1 head, ≤ 2 due rows
//	forgetting n ids    reads 1 head, looks at their lists and one more;
//	                    deletes n identities and the lists, writes 1 head, ≤ 1 due row
//
// None depends on how many events the source holds or who reads it, but for
// pins, which are one row for each group of the source: the head remembers the
// lowest one seen (PinFloor), so an append that trims asks for them only when it
// would cut past that. While groups keep up, that is once for about as many events
// as the source retains. One that is refused because of a pin always asks.

// eventKey is the place of one event.
type eventKey struct {
	Source   Key
	Position uint64
}

func (k eventKey) append(dst []byte) []byte {
	return codec.AppendUint64(k.Source.Append(dst), k.Position)
}

func readEventKey(r *codec.KeyReader) eventKey { return eventKey{ReadKey(r), r.Uint64()} }

// events holds the one copy of each event. Positions are without gaps. Only
// Append writes it, encoding a whole batch into one buffer; so it has no Encode.
var events = table.Table[eventKey, Record]{
	ID: table.Event, Name: "event",
	Key:      func(dst []byte, k eventKey) []byte { return k.append(dst) },
	ParseKey: readEventKey,
	Decode:   func(b []byte, e *Record) error { return e.decode(b) },
}

// idKey is the identity of one event within its source.
type idKey struct {
	Source Key
	ID     string
}

// identity says which position has an event id, and what its content was. It
// outlives the event: see purge.go.
type identity struct {
	Digest   [digestBytes]byte
	Position uint64
}

const (
	identityVersion  = 1
	maxIdentityBytes = 1 + digestBytes + 10
)

func (i *identity) encode(dst []byte) []byte {
	dst = append(append(dst, identityVersion), i.Digest[:]...)
	return codec.AppendUvarint(dst, i.Position)
}

func (i *identity) decode(b []byte) error {
	r := codec.NewReader(b)
	r.Version(identityVersion)
	copy(i.Digest[:], r.Fixed(digestBytes))
	i.Position = r.Uvarint()
	return r.End()
}

// identities holds one row for every event and for every purged event whose id
// is still recognized. The id ends the key as it is.
var identities = table.Table[idKey, identity]{
	ID: table.EventID, Name: "eventId",
	Key: func(dst []byte, k idKey) []byte { return append(k.Source.Append(dst), k.ID...) },
	ParseKey: func(r *codec.KeyReader) idKey {
		k := ReadKey(r)
		return idKey{k, string(r.Bytes(len(r.Rest())))}
	},
	Encode: func(dst []byte, i *identity) []byte { return i.encode(dst) },
	Decode: func(b []byte, i *identity) error { return i.decode(b) },
}

// idList names the events that one removal step removed, so that their ids can
// be forgotten later. It ends at the position in its key and has no gaps: a list
// of 3 at position 10 is of the events 8, 9 and 10.
type idList struct {
	Until int64 // forgotten from this logged time on, milliseconds
	IDs   []string
}

// maxListIDs bounds one list: 256 ids of 256 bytes are 64 KiB.
const maxListIDs = 256

const idListVersion = 1

func (l *idList) encode(dst []byte) []byte {
	dst = codec.AppendVarint(append(dst, idListVersion), l.Until)
	dst = codec.AppendUvarint(dst, uint64(len(l.IDs)))
	for _, id := range l.IDs {
		dst = codec.AppendString(dst, id)
	}
	return dst
}

func (l *idList) decode(b []byte) error {
	r := codec.NewReader(b)
	r.Version(idListVersion)
	l.Until = r.Varint()
	n := r.Uvarint()
	if n > maxListIDs {
		return codec.ErrRecord
	}
	l.IDs = make([]string, n)
	for i := range l.IDs {
		l.IDs[i] = r.String()
	}
	return r.End()
}

// purgedIDs holds the lists in the order of positions.
var purgedIDs = table.Table[eventKey, idList]{
	ID: table.PurgedIDs, Name: "purgedIds",
	Key:      func(dst []byte, k eventKey) []byte { return k.append(dst) },
	ParseKey: readEventKey,
	Encode:   func(dst []byte, l *idList) []byte { return l.encode(dst) },
	Decode:   func(b []byte, l *idList) error { return l.decode(b) },
}

// heads holds one row for every source that ever had an event.
var heads = table.Table[Key, Head]{
	ID: table.SourceHead, Name: "sourceHead", Hot: true,
	Key:      func(dst []byte, k Key) []byte { return k.Append(dst) },
	ParseKey: ReadKey,
	Encode:   func(dst []byte, h *Head) []byte { return h.encode(dst) },
	Decode:   func(b []byte, h *Head) error { return h.decode(b) },
}
