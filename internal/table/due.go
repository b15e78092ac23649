package table

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
)

// DueKind says which handler a due row is for. Append only.
type DueKind uint8

// The kinds of due rows.
const (
	DueLane      DueKind = 1  // queue: something of a lane is due
	DuePurge     DueKind = 2  // source: purged rows to remove
	DuePurgedIDs DueKind = 3  // source: event identities past their horizon
	DueTombstone DueKind = 4  // document: tombstones past their horizon
	DueReceipts  DueKind = 5  // machine: receipts past their horizon
	DueInbox     DueKind = 6  // inbox: rows past their horizon
	DueDeletion  DueKind = 7  // directory: a deleted resource's rows to remove
	DueGroup     DueKind = 10 // group: a retry or lease of a group is due
	DueLimit     DueKind = 9  // queue: lanes to look through since a limit was lowered
	DueRemoval   DueKind = 12 // group: rows of a deleted group to remove
	DueAge       DueKind = 11 // source: events past their age; sources to arm anew since that was lowered
)

// DueKey is one row of the one table of things that happen later. An owner has
// at most one row a kind: its earliest instant; what else is due later stands in
// the owner's own index, and the handler arms the next instant from it. So a
// lane with a million leases costs one due row, and the row count of this table
// is the count of owners that wait for something.
type DueKey struct {
	Shard uint16
	When  int64 // logged time, milliseconds
	Kind  DueKind
	Owner string // key parts of the owner, as the kind's handler reads them
}

// DueRows is the due table.
var DueRows = Table[DueKey, None]{
	ID: Due, Name: "due",
	Key: func(dst []byte, k DueKey) []byte {
		dst = codec.AppendInt64(codec.AppendUint16(dst, k.Shard), k.When)
		return append(codec.AppendUint8(dst, uint8(k.Kind)), k.Owner...)
	},
	ParseKey: func(r *codec.KeyReader) (k DueKey) {
		k.Shard, k.When, k.Kind = r.Uint16(), r.Int64(), DueKind(r.Uint8())
		k.Owner = string(r.Bytes(len(r.Rest())))
		return k
	},
	Encode: EncodeNone, Decode: DecodeNone,
}

// Arm moves the due row of (kind, owner) from *armed to when and remembers it
// in *armed; 0 means no row. It writes nothing when they are equal. The caller
// keeps *armed in the owner's head, so no read is needed.
func Arm(tx *kv.Tx, shard uint16, kind DueKind, owner []byte, armed *int64, when int64) {
	if *armed == when {
		return
	}
	if *armed != 0 {
		DueRows.Delete(tx, DueKey{shard, *armed, kind, string(owner)})
	}
	if when != 0 {
		DueRows.Put(tx, DueKey{shard, when, kind, string(owner)}, &None{})
	}
	*armed = when
}

// ArmBy is Arm when nothing earlier is armed already: it never moves an instant
// later, so a busy owner rewrites its row only when something earlier turns up.
func ArmBy(tx *kv.Tx, shard uint16, kind DueKind, owner []byte, armed *int64, when int64) {
	if when != 0 && (*armed == 0 || when < *armed) {
		Arm(tx, shard, kind, owner, armed, when)
	}
}
