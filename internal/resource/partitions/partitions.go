package partitions

import (
	"crypto/sha256"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

// record is the stored name.
type record struct {
	Ref api.PartitionRef `cbor:"1,keyasint"`
}

var rows = table.Table[table.Space, record]{
	ID: table.Partition, Name: "partition", Hot: true,
	Key:      func(dst []byte, k table.Space) []byte { return k.Append(dst) },
	ParseKey: table.ReadSpace,
	Encode:   table.EncodeCBOR[record], Decode: table.DecodeCBOR[record],
}

// Tables are the tables this package owns.
func Tables() []table.Info { return []table.Info{rows.Info()} }

// Hash is what stands for a partition in keys: the first half of SHA-256 over
// its text form. Two names that share it would need about 2^64 tries to find.
func Hash(p api.PartitionRef) (h [16]byte) {
	sum := sha256.Sum256([]byte(p.String()))
	copy(h[:], sum[:])
	return h
}

// ShardOf maps a partition to one of n data shards, numbered from 1.
func ShardOf(hash [16]byte, n uint16) uint16 {
	return 1 + (uint16(hash[14])<<8|uint16(hash[15]))%n
}

// Ensure stores the name of a partition that has just been written to for the
// first time. It costs one hot read.
func Ensure(tx *kv.Tx, s table.Space, ref api.PartitionRef) error {
	known, err := rows.Shared(tx, s)
	if err != nil || known != nil {
		return err
	}
	rows.Put(tx, s, &record{ref})
	return nil
}

// Each calls fn for every partition of a shard, from the given hash on.
func Each(r kv.Reader, shard uint16, from [16]byte, fn func(s table.Space, ref api.PartitionRef) (bool, error)) error {
	rg := table.Range{Prefix: codec.AppendUint16(nil, shard), From: table.Space{Shard: shard, Partition: from}.Append(nil)}
	return rows.Scan(r, rg, func(s table.Space, v *record) (bool, error) { return fn(s, v.Ref) })
}

// Find is the name of a partition; false when nothing was ever written to it.
func Find(r kv.Reader, s table.Space) (api.PartitionRef, bool, error) {
	v, ok, err := rows.Get(r, s)
	return v.Ref, ok, err
}
