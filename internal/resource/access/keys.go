package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/table"
)

const (
	keyPrefix   = "kl_"
	keyIDBytes  = 8
	secretBytes = 32
)

// makeKey draws the key at the door. Only the hash of the secret goes into the
// log; the secret stays in this call's request, which is never encoded with it.
func makeKey(d *op.Door, req *api.APIKeysCreateRequest) (bool, error) {
	random := make([]byte, keyIDBytes+secretBytes)
	d.Random(random)
	req.KeyID = hex.EncodeToString(random[:keyIDBytes])
	req.Secret = base64.RawURLEncoding.EncodeToString(random[keyIDBytes:])
	sum := sha256.Sum256([]byte(req.Secret))
	req.SecretHash = sum[:]
	return true, nil
}

func createKey(c *op.Ctx, req *api.APIKeysCreateRequest) (*api.APIKeysCreateResponse, error) {
	p, err := principals.Shared(c.Tx, principalKey{c.Space.Shard, req.Tenant, req.PrincipalID})
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, fault.New(fault.NotFound, "unknown_principal", "there is no principal %q", req.PrincipalID)
	case p.Revoked:
		return nil, fault.New(fault.Conflict, "principal_revoked", "principal %q is revoked", req.PrincipalID)
	case p.Administrator && !c.Principal.Administrator:
		return nil, fault.New(fault.PermissionDenied, "administrator_only", "only an administrator may make a key for another one")
	case req.ExpiresAt != 0 && int64(req.ExpiresAt) <= c.Now:
		return nil, fault.Invalid("/expiresAt", "is not in the future")
	}
	taken, err := keyTenants.Has(c.Tx, tenantKey{c.Space.Shard, req.KeyID})
	if err != nil {
		return nil, err
	}
	if taken {
		return nil, fault.New(fault.Conflict, "key_id_taken", "the drawn key id is taken").WithRetry(fault.RetryNewID)
	}
	// From here on it succeeds.
	keys.Put(c.Tx, keyKey{c.Space.Shard, req.Tenant, req.KeyID}, &storedKey{
		Key: api.APIKey{
			KeyID: req.KeyID, PrincipalID: req.PrincipalID, Tenant: req.Tenant,
			CreatedAt: api.Time(c.Now), ExpiresAt: req.ExpiresAt,
		},
		SecretHash: req.SecretHash,
	})
	keyTenants.Put(c.Tx, tenantKey{c.Space.Shard, req.KeyID}, &keyTenant{req.Tenant})
	return &api.APIKeysCreateResponse{KeyID: req.KeyID}, nil
}

// showKey adds the key to the answer of the call that made it. A retry answered
// from the receipt names another id than its own request drew, and shows none.
func showKey(_ *op.Door, req *api.APIKeysCreateRequest, resp *api.APIKeysCreateResponse) error {
	if resp.KeyID == req.KeyID {
		resp.APIKey = keyPrefix + resp.KeyID + "_" + req.Secret
	}
	return nil
}

func revokeKey(c *op.Ctx, req *api.APIKeysRevokeRequest) (*api.APIKeysRevokeResponse, error) {
	k := keyKey{c.Space.Shard, req.Tenant, req.KeyID}
	v, ok, err := keys.Get(c.Tx, k)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NotFound, "unknown_api_key", "there is no such API key")
	}
	p, err := principals.Shared(c.Tx, principalKey{c.Space.Shard, req.Tenant, v.Key.PrincipalID})
	if err != nil {
		return nil, err
	}
	if p != nil && p.Administrator && !c.Principal.Administrator {
		return nil, fault.New(fault.PermissionDenied, "administrator_only", "only an administrator may revoke a key of another one")
	}
	resp := &api.APIKeysRevokeResponse{KeyID: req.KeyID, Changed: !v.Key.Revoked}
	if resp.Changed {
		v.Key.Revoked, v.Key.RevokedAt = true, api.Time(c.Now)
		keys.Put(c.Tx, k, &v)
		return resp, tellShards(c, p)
	}
	return resp, nil
}

// tellShards moves every shard to a new revision of the catalog, with the policy as
// it is: whoever leads one then knows that its copy of the catalog, which alone has
// keys, must be at least as new.
func tellShards(c *op.Ctx, p *api.Principal) error {
	if p == nil { // the key opened nothing
		return nil
	}
	_, err := changes.Append(c, changes.Principal, table.EncodeCBOR(nil, p))
	return err
}

func listKeys(v *op.View, req *api.APIKeysListRequest) (*api.APIKeysListResponse, error) {
	prefix := codec.AppendText(codec.AppendUint16(nil, v.Space.Shard), req.Tenant)
	page := op.NewPage(v, "apiKeys\x00"+req.Tenant+"\x00"+req.PrincipalID, prefix, req.Limit)
	from, err := page.Begin(req.Cursor)
	if err != nil {
		return nil, err
	}
	resp := &api.APIKeysListResponse{Keys: []api.APIKey{}}
	err = keys.Scan(v.R, table.Range{Prefix: prefix, From: from}, func(k keyKey, s *storedKey) (bool, error) {
		if page.Full() {
			resp.Cursor = page.Next(codec.AppendText(nil, k.KeyID))
			return false, nil
		}
		page.Look()
		if req.PrincipalID == "" || req.PrincipalID == s.Key.PrincipalID {
			page.Add()
			resp.Keys = append(resp.Keys, s.Key)
		}
		return true, nil
	})
	return resp, err
}

// ActiveKeys counts the keys that are neither revoked nor expired at now
// (milliseconds). It reads all of them.
func ActiveKeys(r kv.Reader, catalogShard uint16, now int64) (n int64, err error) {
	err = keys.Scan(r, table.Range{Prefix: codec.AppendUint16(nil, catalogShard)}, func(_ keyKey, v *storedKey) (bool, error) {
		if !v.Key.Revoked && (v.Key.ExpiresAt == 0 || int64(v.Key.ExpiresAt) > now) {
			n++
		}
		return true, nil
	})
	return n, err
}

// KeyHolds says whether a key that was proven is neither revoked nor expired at now
// (milliseconds), and when it expires; 0 is never.
func KeyHolds(r kv.Reader, catalogShard uint16, tenant, id string, now int64) (holds bool, expires api.Time, err error) {
	v, ok, err := keys.Get(r, keyKey{catalogShard, tenant, id})
	if err != nil || !ok || v.Key.Revoked || v.Key.ExpiresAt != 0 && int64(v.Key.ExpiresAt) <= now {
		return false, 0, err
	}
	return true, v.Key.ExpiresAt, nil
}

// Identity is what an API key proves.
type Identity struct {
	Tenant, Principal string
	KeyID             string
	ExpiresAt         api.Time // of the key; 0 is never
}

// BadKey is the one refusal of every key that proves nothing.
func BadKey() *fault.Error {
	return fault.New(fault.Unauthenticated, "bad_api_key", "the API key is missing, unknown, revoked or expired; send it as Authorization: Bearer kl_…")
}

// Authenticate finds whose key a text is, at now (milliseconds). Every failure
// is the same Unauthenticated, so that a guess learns nothing.
func Authenticate(r kv.Reader, catalogShard uint16, text string, now int64) (Identity, error) {
	unknown := BadKey()
	rest, ok := strings.CutPrefix(text, keyPrefix)
	id, secret, ok2 := strings.Cut(rest, "_")
	if !ok || !ok2 || len(id) != 2*keyIDBytes {
		return Identity{}, unknown
	}
	t, ok, err := keyTenants.Get(r, tenantKey{catalogShard, id})
	if err != nil {
		return Identity{}, err
	}
	if !ok {
		return Identity{}, unknown
	}
	v, ok, err := keys.Get(r, keyKey{catalogShard, t.Tenant, id})
	if err != nil {
		return Identity{}, err
	}
	sum := sha256.Sum256([]byte(secret))
	if !ok || subtle.ConstantTimeCompare(sum[:], v.SecretHash) != 1 || v.Key.Revoked ||
		(v.Key.ExpiresAt != 0 && int64(v.Key.ExpiresAt) <= now) {
		return Identity{}, unknown
	}
	return Identity{t.Tenant, v.Key.PrincipalID, id, v.Key.ExpiresAt}, nil
}
