package system

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

// Format is the version of the stored form this program writes. A store of a
// greater one is refused with FormatUnsupported, one of a smaller one is upgraded
// when it is opened for writing.
//
//	1  the first
//	2  groups, retention and its pins, the inbox of other inputs, dispatch, restores
//
// Records keep being readable in every version they ever had, so an upgrade only
// writes the number: from then on programs that do not know what may follow
// refuse the store.
const Format = 2

// CatalogShard holds the catalog; data shards are numbered from 1.
const CatalogShard uint16 = 0

// MaxShards is how many data shards a store has at most.
const MaxShards = 64

// Identity is what a store is. It is written once, when the store is made, and
// again by a restore.
type Identity struct {
	Format      int64    `cbor:"1,keyasint"`
	Incarnation [16]byte `cbor:"2,keyasint"`
	Shards      uint16   `cbor:"3,keyasint"` // data shards; fixed for good
	TokenKeys   [][]byte `cbor:"4,keyasint"` // the first signs, all verify
	CreatedAt   int64    `cbor:"5,keyasint"` // milliseconds
}

var identities = table.Table[struct{}, Identity]{
	ID: table.StoreInfo, Name: "identity",
	Key:      func(dst []byte, _ struct{}) []byte { return dst },
	ParseKey: func(*codec.KeyReader) struct{} { return struct{}{} },
	Encode:   table.EncodeCBOR[Identity], Decode: decodeIdentity,
}

// decodeIdentity reads of a newer format no more than which one it is: a program
// that does not know a store must be able to say so.
func decodeIdentity(b []byte, id *Identity) error {
	err := table.DecodeCBOR(b, id)
	if err == nil {
		return nil
	}
	var known struct {
		Format int64 `cbor:"1,keyasint"`
	}
	if wire.DecodeKnown(b, &known) == nil && known.Format > Format {
		*id = Identity{Format: known.Format}
		return nil
	}
	return err
}

// ReadIdentity returns the store's identity; false when the store is new.
func ReadIdentity(r kv.Reader) (Identity, bool, error) { return identities.Get(r, struct{}{}) }

// WriteIdentity stores it. It is no command: it comes before the first entry.
func WriteIdentity(tx *kv.Tx, id Identity) { identities.Put(tx, struct{}{}, &id) }
