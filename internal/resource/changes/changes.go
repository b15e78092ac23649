package changes

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Kind says which package a change is for. Append only.
type Kind uint8

// The kinds of changes.
const (
	Resource  Kind = 1 // a resource was configured, or its deletion began
	Principal Kind = 2 // a principal's policy was set
	Forgotten Kind = 3 // a deleted resource's name is free again
	Dispatch  Kind = 4 // delivery was stopped or resumed
)

// Change is one change of the catalog as it travels to the shards.
type Change struct {
	Revision uint64 `cbor:"1,keyasint"`
	Kind     Kind   `cbor:"2,keyasint"`
	Record   []byte `cbor:"3,keyasint"`
}

// head is the revision a shard has: in the catalog shard the newest, elsewhere
// the last one installed.
type head struct {
	Revision uint64 `cbor:"1,keyasint"`
}

var heads = table.Table[uint16, head]{
	ID: table.DirectoryHead, Name: "catalogRevision", Hot: true,
	Key:      func(dst []byte, shard uint16) []byte { return codec.AppendUint16(dst, shard) },
	ParseKey: func(r *codec.KeyReader) uint16 { return r.Uint16() },
	Encode:   table.EncodeCBOR[head], Decode: table.DecodeCBOR[head],
}

type historyKey struct {
	Shard    uint16
	Revision uint64
}

var history = table.Table[historyKey, Change]{
	ID: table.CatalogHistory, Name: "catalogHistory",
	Key: func(dst []byte, k historyKey) []byte {
		return codec.AppendUint64(codec.AppendUint16(dst, k.Shard), k.Revision)
	},
	ParseKey: func(r *codec.KeyReader) historyKey { return historyKey{r.Uint16(), r.Uint64()} },
	Encode:   table.EncodeCBOR[Change], Decode: table.DecodeCBOR[Change],
}

// Tables are the tables this package owns.
func Tables() []table.Info { return []table.Info{heads.Info(), history.Info()} }

// Append records a change in the catalog shard and returns its revision.
func Append(c *op.Ctx, kind Kind, record []byte) (uint64, error) {
	h, _, err := heads.Get(c.Tx, c.Space.Shard)
	if err != nil {
		return 0, err
	}
	h.Revision++
	heads.Put(c.Tx, c.Space.Shard, &h)
	history.Put(c.Tx, historyKey{c.Space.Shard, h.Revision}, &Change{h.Revision, kind, record})
	return h.Revision, nil
}

// Installed moves a data shard to the revision of a change; false means that
// the shard has it already, or that one before it is missing.
func Installed(c *op.Ctx, revision uint64) (bool, error) {
	h, _, err := heads.Get(c.Tx, c.Space.Shard)
	if err != nil || revision != h.Revision+1 {
		return false, err
	}
	h.Revision = revision
	heads.Put(c.Tx, c.Space.Shard, &h)
	return true, nil
}

// Revision is the revision a shard has.
func Revision(r kv.Reader, shard uint16) (uint64, error) {
	h, _, err := heads.Get(r, shard)
	return h.Revision, err
}

// Since lists at most limit changes after a revision, in order.
func Since(r kv.Reader, catalogShard uint16, after uint64, limit int) ([]Change, error) {
	var out []Change
	prefix := codec.AppendUint16(nil, catalogShard)
	from := codec.AppendUint64(codec.AppendUint16(nil, catalogShard), after+1)
	err := history.Scan(r, table.Range{Prefix: prefix, From: from}, func(_ historyKey, c *Change) (bool, error) {
		out = append(out, *c)
		return len(out) < limit, nil
	})
	return out, err
}
