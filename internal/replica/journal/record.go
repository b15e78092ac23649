package journal

import (
	"encoding/binary"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/internal/codec"
)

// The keys are a kind, the shard and, of an entry, its index.
const (
	kindEntry     = 'l' // version, term, type, data
	kindState     = 'h' // version, term, vote, commit
	kindTruncated = 't' // version, index and term of the last entry that is gone
	kindInstall   = 'p' // version, index and term of a snapshot being installed, its file
	kindIdentity  = 'i' // no shard: version, incarnation, node, founding
)

const recordVersion = 1

func shardKey(kind byte, shard uint16) []byte {
	return codec.AppendUint16(append(make([]byte, 0, 11), kind), shard)
}

func entryKey(shard uint16, index uint64) []byte {
	return codec.AppendUint64(shardKey(kindEntry, shard), index)
}

// entriesEnd is the key behind all entries of a shard.
func entriesEnd(shard uint16) []byte { return codec.PrefixEnd(shardKey(kindEntry, shard)) }

func encodeEntry(e *pb.Entry) []byte {
	dst := append(make([]byte, 0, 16+len(e.GetData())), recordVersion)
	dst = codec.AppendUvarint(dst, e.GetTerm())
	dst = codec.AppendUvarint(dst, uint64(e.GetType()))
	return append(dst, e.GetData()...)
}

// decodeEntry copies what it keeps.
func decodeEntry(index uint64, b []byte) (*pb.Entry, error) {
	if len(b) == 0 || b[0] != recordVersion {
		return nil, codec.ErrRecord
	}
	term, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return nil, codec.ErrRecord
	}
	rest := b[1+n:]
	kind, n := binary.Uvarint(rest)
	if n <= 0 || kind > uint64(pb.EntryConfChangeV2) || term == 0 {
		return nil, codec.ErrRecord
	}
	e := &pb.Entry{Term: new(term), Index: new(index), Type: pb.EntryType(kind).Enum()}
	if data := rest[n:]; len(data) > 0 {
		e.Data = append([]byte(nil), data...)
	}
	return e, nil
}

// numbers is a record of numbers alone.
func numbers(values ...uint64) []byte {
	dst := []byte{recordVersion}
	for _, v := range values {
		dst = codec.AppendUvarint(dst, v)
	}
	return dst
}

func readNumbers(b []byte, into ...*uint64) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	for _, v := range into {
		*v = r.Uvarint()
	}
	return r.End()
}

// Install is a snapshot that is being installed: the state of its shard is neither
// the old nor the new one until it is repeated or done.
type Install struct {
	Index, Term uint64
	File        string
}

func (i *Install) encode() []byte {
	return codec.AppendBytes(numbers(i.Index, i.Term), []byte(i.File))
}

func (i *Install) decode(b []byte) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	i.Index, i.Term = r.Uvarint(), r.Uvarint()
	i.File = string(r.Bytes())
	return r.End()
}

// Identity says whose journal it is.
type Identity struct {
	Incarnation [16]byte // of the store
	Node        uint64
	// Founding says that the node is about to begin a cluster: until that is done the
	// journal says nothing else.
	Founding bool
}

func (i *Identity) encode() []byte {
	dst := append([]byte{recordVersion}, i.Incarnation[:]...)
	return codec.AppendBool(codec.AppendUvarint(dst, i.Node), i.Founding)
}

func (i *Identity) decode(b []byte) error {
	r := codec.NewReader(b)
	r.Version(recordVersion)
	copy(i.Incarnation[:], r.Fixed(16))
	i.Node, i.Founding = r.Uvarint(), r.Bool()
	return r.End()
}
