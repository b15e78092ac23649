package directory

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// Name identifies a resource within a shard.
type Name struct {
	Shard                  uint16
	Tenant, Database, Name string
}

// byName holds the definitions: in the catalog shard the ruling copy, in every
// data shard the replicated one that its commands are evaluated against.
var byName = table.Table[Name, api.Resource]{
	ID: table.ResourceByName, Name: "resource", Hot: true,
	Key: func(dst []byte, k Name) []byte {
		dst = codec.AppendText(codec.AppendUint16(dst, k.Shard), k.Tenant)
		return codec.AppendText(codec.AppendText(dst, k.Database), k.Name)
	},
	ParseKey: func(r *codec.KeyReader) Name { return Name{r.Uint16(), r.Text(), r.Text(), r.Text()} },
	Encode:   table.EncodeCBOR[api.Resource], Decode: table.DecodeCBOR[api.Resource],
}

// number is the row that finds a definition by the number in stored keys.
type number struct {
	Tenant   string           `cbor:"1,keyasint"`
	Database string           `cbor:"2,keyasint"`
	Name     string           `cbor:"3,keyasint"`
	Kind     api.ResourceKind `cbor:"4,keyasint"`
	Gone     bool             `cbor:"5,keyasint,omitempty"` // deleted: the number is never used again
	Fence    uint64           `cbor:"6,keyasint,omitempty"` // of the last freeze before a deletion
}

type numberKey struct {
	Shard uint16
	ID    uint32
}

var byID = table.Table[numberKey, number]{
	ID: table.ResourceByID, Name: "resourceNumber", Hot: true,
	Key: func(dst []byte, k numberKey) []byte {
		return codec.AppendUint32(codec.AppendUint16(dst, k.Shard), k.ID)
	},
	ParseKey: func(r *codec.KeyReader) numberKey { return numberKey{r.Uint16(), r.Uint32()} },
	Encode:   table.EncodeCBOR[number], Decode: table.DecodeCBOR[number],
}
