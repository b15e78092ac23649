package machine

import (
	"slices"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Applied says how far a replicated log is in the state of a shard. A store whose
// log is its own batches has none. It is a replica's own: no digest covers it.
type Applied struct {
	Index, Term uint64 // of the last entry
	Node        uint64 // whose replica this is
	// Voters and Learners are the nodes that hold the shard, as of that entry, by
	// rising id.
	Voters, Learners []uint64
}

const (
	appliedVersion = 1
	// maxMembers bounds a list of members that is read, far above what is of use.
	maxMembers = 256
)

var applied = table.Table[uint16, Applied]{
	ID: table.Applied, Name: "applied",
	Key:      func(dst []byte, shard uint16) []byte { return codec.AppendUint16(dst, shard) },
	ParseKey: func(r *codec.KeyReader) uint16 { return r.Uint16() },
	Encode: func(dst []byte, a *Applied) []byte {
		dst = append(dst, appliedVersion)
		for _, n := range []uint64{a.Index, a.Term, a.Node} {
			dst = codec.AppendUvarint(dst, n)
		}
		for _, ids := range [][]uint64{a.Voters, a.Learners} {
			dst = codec.AppendUvarint(dst, uint64(len(ids)))
			for _, id := range ids {
				dst = codec.AppendUvarint(dst, id)
			}
		}
		return dst
	},
	Decode: func(b []byte, a *Applied) error {
		r := codec.NewReader(b)
		r.Version(appliedVersion)
		a.Index, a.Term, a.Node = r.Uvarint(), r.Uvarint(), r.Uvarint()
		for _, ids := range []*[]uint64{&a.Voters, &a.Learners} {
			n := r.Uvarint()
			if n > maxMembers {
				return codec.ErrRecord
			}
			for range n {
				*ids = append(*ids, r.Uvarint())
			}
		}
		return r.End()
	},
}

// StoredApplied reads how far the replicated log is in a state; false where there is
// no such log.
func StoredApplied(r kv.Reader, shard uint16) (Applied, bool, error) {
	return applied.Get(r, shard)
}

// PutApplied makes a state one of a replicated log.
func PutApplied(tx *kv.Tx, shard uint16, a *Applied) { applied.Put(tx, shard, a) }

// ForgetApplied makes a state that of a store alone: what a restored backup brings of
// the log that it was made under says nothing any more.
func ForgetApplied(tx *kv.Tx, shard uint16) { applied.Delete(tx, shard) }

// check: a state holds an entry, of a term at least as late as the epoch of its
// commands; somebody votes, and everybody is named once.
func (a *Applied) check(x *op.Audit, head Head) {
	if a.Index == 0 || a.Term < max(head.Epoch, 1) || a.Node == 0 {
		x.Report("applied", "replicated log", "it names entry %d of term %d at node %d; the shard is in epoch %d", a.Index, a.Term, a.Node, head.Epoch)
	}
	if len(a.Voters) == 0 || !rising(a.Voters) || !rising(a.Learners) ||
		slices.ContainsFunc(a.Learners, func(id uint64) bool { return slices.Contains(a.Voters, id) }) {
		x.Report("applied", "replicated log", "its members are none: %d vote, %d learn", a.Voters, a.Learners)
	}
}

// rising says that ids are some and each is above the one before.
func rising(ids []uint64) bool {
	last := uint64(0)
	for _, id := range ids {
		if id <= last {
			return false
		}
		last = id
	}
	return true
}
