package access

import (
	"crypto/sha256"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/table"
)

// Hash stands for a principal in receipt keys and in tokens.
func Hash(tenant, principal string) (h [16]byte) {
	b := codec.AppendText(make([]byte, 0, 96), tenant)
	sum := sha256.Sum256(append(b, principal...))
	copy(h[:], sum[:])
	return h
}

type principalKey struct {
	Shard      uint16
	Tenant, ID string
}

// principals holds the policies: in the catalog shard the ruling copy, in every
// data shard the replicated one that its commands are decided by.
var principals = table.Table[principalKey, api.Principal]{
	ID: table.Principal, Name: "principal", Hot: true,
	Key: func(dst []byte, k principalKey) []byte {
		return codec.AppendText(codec.AppendText(codec.AppendUint16(dst, k.Shard), k.Tenant), k.ID)
	},
	ParseKey: func(r *codec.KeyReader) principalKey { return principalKey{r.Uint16(), r.Text(), r.Text()} },
	Encode:   table.EncodeCBOR[api.Principal], Decode: table.DecodeCBOR[api.Principal],
}

type keyKey struct {
	Shard  uint16
	Tenant string
	KeyID  string
}

// storedKey is a key without its secret.
type storedKey struct {
	Key        api.APIKey `cbor:"1,keyasint"`
	SecretHash []byte     `cbor:"2,keyasint"`
}

// keys holds API keys, in the catalog shard only: they matter at the door.
var keys = table.Table[keyKey, storedKey]{
	ID: table.APIKey, Name: "apiKey",
	Key: func(dst []byte, k keyKey) []byte {
		return codec.AppendText(codec.AppendText(codec.AppendUint16(dst, k.Shard), k.Tenant), k.KeyID)
	},
	ParseKey: func(r *codec.KeyReader) keyKey { return keyKey{r.Uint16(), r.Text(), r.Text()} },
	Encode:   table.EncodeCBOR[storedKey], Decode: table.DecodeCBOR[storedKey],
}

// keyTenant finds the tenant of a key id, which is all a caller presents.
type keyTenant struct {
	Tenant string `cbor:"1,keyasint"`
}

type tenantKey struct {
	Shard uint16
	KeyID string
}

var keyTenants = table.Table[tenantKey, keyTenant]{
	ID: table.APIKeyTenant, Name: "apiKeyTenant",
	Key: func(dst []byte, k tenantKey) []byte {
		return codec.AppendText(codec.AppendUint16(dst, k.Shard), k.KeyID)
	},
	ParseKey: func(r *codec.KeyReader) tenantKey { return tenantKey{r.Uint16(), r.Text()} },
	Encode:   table.EncodeCBOR[keyTenant], Decode: table.DecodeCBOR[keyTenant],
}
