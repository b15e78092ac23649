package group

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// What each operation reads and writes. Definition and head stay in memory; a
// command writes the head once, and the group's due row only when something
// earlier than what is armed turns up.
//
//	receive of n new       one scan of n events · put n window rows, one lease row
//	  passing over m       m events more · one gap run, or none at the checkpoint
//	receive of n retries   one scan of n ready entries · get n rows, n events ·
//	                       delete n ready, put n rows, one lease row
//	ack of n               get n rows, and per lease they are of one lease row ·
//	                       delete n rows, write or delete the lease rows · per
//	                       stretch of adjacent positions, while there are runs: get
//	                       the row after it, the run end before it and that run;
//	                       write one run and its end
//	nack, release          get row, lease row · put row, one waiting or ready entry
//	renew                  get row, lease row · put row · one lease row a deadline
//	status of r rows       r rows, one event
//	seek, update           all rows of the window and of its indexes, once
//	delete                 delete definition, head and skips · put a marker and its
//	                       due row; steps of 256 rows remove the rest by their keys
//
// perKey adds one row a position, and to an ack one look at the key's next.
// Nothing depends on how far the window spans, how long the backlog is, or how
// many other groups read the source.

// name is what a group is called: key of its definition. It starts with the
// source, so a prefix finds all groups of one.
type name struct {
	Source source.Key
	Group  string
}

func (n name) append(dst []byte) []byte { return codec.AppendText(n.Source.Append(dst), n.Group) }

func readName(r *codec.KeyReader) name { return name{source.ReadKey(r), r.Text()} }

// ref is the number a group got when it was created: the position of that
// command in the shard, which is never given twice. A group that is deleted and
// made again is another one, so nothing of the old one can be taken for its own.
type ref struct {
	Owner table.Owner
	ID    uint64
}

func (f ref) append(dst []byte) []byte { return codec.AppendUint64(f.Owner.Append(dst), f.ID) }

func readRef(r *codec.KeyReader) ref { return ref{table.ReadOwner(r), r.Uint64()} }

// place is a position that may be claimed: of the window, or a dead letter that
// was redriven. Dead letters come first.
type place struct {
	Window   bool
	Position uint64
}

// code is a place as one number, in the order of places of one kind.
func (p place) code() uint64 {
	if p.Window {
		return p.Position<<1 | 1
	}
	return p.Position << 1
}

func placeOf(code uint64) place { return place{code&1 == 1, code >> 1} }

type rowKey struct {
	Ref      ref
	Position uint64
}

func appendRow(dst []byte, k rowKey) []byte { return codec.AppendUint64(k.Ref.append(dst), k.Position) }
func readRow(r *codec.KeyReader) rowKey     { return rowKey{readRef(r), r.Uint64()} }

type readyKey struct {
	Ref   ref
	Place place
}

func appendReady(dst []byte, k readyKey) []byte {
	dst = codec.AppendUint8(k.Ref.append(dst), kindOf(k.Place))
	return codec.AppendUint64(dst, k.Place.Position)
}

func readReady(r *codec.KeyReader) readyKey {
	return readyKey{readRef(r), place{r.Uint8() == windowKind, r.Uint64()}}
}

const (
	deadKind   = 0
	windowKind = 1
)

func kindOf(p place) uint8 {
	if p.Window {
		return windowKind
	}
	return deadKind
}

// timeKey orders what is due by its instant; equal ones by a place's code or a
// lease's number.
type timeKey struct {
	Ref  ref
	When int64
	Seq  uint64
}

func appendTime(dst []byte, k timeKey) []byte {
	return codec.AppendUint64(codec.AppendInt64(k.Ref.append(dst), k.When), k.Seq)
}

func readTime(r *codec.KeyReader) timeKey { return timeKey{readRef(r), r.Int64(), r.Uint64()} }

// orderKey orders the unfinished positions of one ordering key.
type orderKey struct {
	Ref      ref
	Key      string
	Position uint64
}

func appendOrder(dst []byte, k orderKey) []byte {
	return codec.AppendUint64(codec.AppendText(k.Ref.append(dst), k.Key), k.Position)
}

func readOrder(r *codec.KeyReader) orderKey { return orderKey{readRef(r), r.Text(), r.Uint64()} }

var definitions = table.Table[name, definition]{
	ID: table.GroupDefinition, Name: "groupDefinition", Hot: true,
	Key:      func(dst []byte, n name) []byte { return n.append(dst) },
	ParseKey: readName, Encode: encodeDefinition, Decode: decodeDefinition,
}

var heads = table.Table[ref, head]{
	ID: table.GroupHead, Name: "groupHead", Hot: true,
	Key:      func(dst []byte, f ref) []byte { return f.append(dst) },
	ParseKey: readRef, Encode: encodeHead, Decode: decodeHead,
}

// rows is the window: one row for every unfinished position above the
// checkpoint, and one for every gap run at its first position.
var rows = table.Table[rowKey, row]{
	ID: table.GroupRow, Name: "groupRow", Recent: true,
	Key: appendRow, ParseKey: readRow, Encode: encodeRow, Decode: decodeRow,
}

// runEnds finds a run by its last position: its value is the first one. With the
// key of rows, both neighbours of a position are found without walking over what
// lies between, which was deleted.
var runEnds = table.Table[rowKey, runStart]{
	ID: table.GroupRunEnd, Name: "groupRunEnd", Recent: true,
	Key: appendRow, ParseKey: readRow,
	Encode: func(dst []byte, v *runStart) []byte {
		return codec.AppendUvarint(append(dst, recordVersion), v.Position)
	},
	Decode: func(b []byte, v *runStart) error {
		r := codec.NewReader(b)
		r.Version(recordVersion)
		v.Position = r.Uvarint()
		return r.End()
	},
}

type runStart struct{ Position uint64 }

// deadLetters holds each with a copy of its event, redriven ones until they are
// acknowledged.
var deadLetters = table.Table[rowKey, deadLetter]{
	ID: table.GroupDead, Name: "groupDead",
	Key: appendRow, ParseKey: readRow, Encode: encodeDead, Decode: decodeDead,
}

// readies, waits and keyed index the places in those states; keyed every
// unfinished position of the window that has an ordering key.
var (
	readies = table.Table[readyKey, table.None]{ID: table.GroupReady, Name: "groupReady", Key: appendReady, ParseKey: readReady, Encode: table.EncodeNone, Decode: table.DecodeNone}
	waits   = table.Table[timeKey, table.None]{ID: table.GroupWait, Name: "groupWait", Key: appendTime, ParseKey: readTime, Encode: table.EncodeNone, Decode: table.DecodeNone}
	keyed   = table.Table[orderKey, table.None]{ID: table.GroupKeyed, Name: "groupKeyed", Key: appendOrder, ParseKey: readOrder, Encode: table.EncodeNone, Decode: table.DecodeNone}
)

// leases holds one row for all places leased by one command until one instant,
// keyed by that instant and the lease's number.
var leases = table.Table[timeKey, lease]{
	ID: table.GroupLease, Name: "groupLease", Recent: true,
	Key: appendTime, ParseKey: readTime, Encode: encodeLease, Decode: decodeLease,
}

// skips keeps the last skips of a group in their order.
var skips = table.Table[rowKey, skip]{
	ID: table.GroupSkip, Name: "groupSkip",
	Key: appendRow, ParseKey: readRow, Encode: encodeSkip, Decode: decodeSkip,
}

// Tables are the tables this package owns.
func Tables() []table.Info {
	return []table.Info{
		definitions.Info(), heads.Info(), rows.Info(), deadLetters.Info(), readies.Info(), waits.Info(),
		keyed.Info(), leases.Info(), skips.Info(), runEnds.Info(), removals.Info(),
	}
}
