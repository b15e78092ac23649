package access

import (
	"bytes"
	"crypto/sha256"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// check verifies that every key has a principal and is found by its id. Whether a
// policy is what the catalog says is checked by package system.
func check(a *op.Audit) error {
	a.Derives(op.Derived{Table: keyTenants.Info(), Weigh: weighTenant})
	err := op.Each(a, &principals, func(k principalKey, p *api.Principal) error {
		a.Count("principals", 1)
		if p.Tenant != k.Tenant || p.ID != k.ID {
			a.Report("reference", principalName(k), "the policy is of another principal")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return op.Each(a, &keys, func(k keyKey, v *storedKey) error {
		a.Count("apiKeys", 1)
		x, where := &v.Key, "API key "+k.KeyID
		if a.Space.Shard != 0 && a.Shards > 0 {
			a.Report("shard", where, "keys are in the shard of the catalog only")
		}
		if x.KeyID != k.KeyID || x.Tenant != k.Tenant || x.Revoked != (x.RevokedAt != 0) || len(v.SecretHash) != sha256.Size {
			a.Report("reference", where, "the key is another one, or cannot be one")
		}
		a.Past(where, "its making", int64(x.CreatedAt))
		a.Past(where, "its revocation", int64(x.RevokedAt))
		ok, err := principals.Has(a.R, principalKey{k.Shard, x.Tenant, x.PrincipalID})
		if err == nil && !ok {
			a.Report("reference", where, "the key's principal does not exist")
		}
		op.Imply(a, &keyTenants, tenantKey{k.Shard, k.KeyID}, &keyTenant{k.Tenant})
		return err
	})
}

// weighTenant: a key says twice of which tenant it is. A row of a key that is not
// there is the last that tells of it.
func weighTenant(_, stored, implied []byte) op.Weight {
	if stored != nil && implied != nil {
		return op.Follow
	}
	return op.Weighed
}

func principalName(k principalKey) string { return "principal " + k.Tenant + "/" + k.ID }

// Implied says which policy follows from a change of the catalog that is the last
// one of its principal in this shard.
func Implied(a *op.Audit, p *api.Principal) {
	op.Imply(a, &principals, principalKey{a.Space.Shard, p.Tenant, p.ID}, p)
}

// ReadChanged reads the record of a change of kind changes.Principal.
func ReadChanged(record []byte) (*api.Principal, error) {
	p := new(api.Principal)
	return p, table.DecodeCBOR(record, p)
}

// Follows says what is wrong with a policy that comes after another one of its
// principal, which is nil for the first; empty is nothing. The same again is right: so
// the shards are told that a key of the principal was revoked.
func Follows(before, now *api.Principal) (why string) {
	if before != nil && before.PolicyEpoch >= now.PolicyEpoch && !bytes.Equal(table.EncodeCBOR(nil, before), table.EncodeCBOR(nil, now)) {
		return "its policy epoch is not above the one before it"
	}
	return ""
}

// Ruled says that the catalog's own policy is what its changes lead to.
func Ruled(r kv.Reader, catalogShard uint16, p *api.Principal) (bool, error) {
	rules, ok, err := principals.Get(r, principalKey{catalogShard, p.Tenant, p.ID})
	return ok && bytes.Equal(table.EncodeCBOR(nil, &rules), table.EncodeCBOR(nil, p)), err
}

// Derived is the table that follows from the changes of the catalog. In the shard
// of the catalog the policies are evidence of their own, and are kept.
func Derived(a *op.Audit) op.Derived {
	d := op.Derived{Table: principals.Info(), Invariant: "catalog", Verified: true}
	if a.Space.Shard == 0 {
		d.Weigh = func(_, _, _ []byte) op.Weight { return op.Keep }
	}
	return d
}

// Hashes calls fn for the hash of every principal a shard knows, the store's own
// included.
func Hashes(a *op.Audit, fn func([16]byte)) error {
	fn(Hash("", Root))
	fn(Hash("", System))
	return op.Each(a, &principals, func(k principalKey, _ *api.Principal) error {
		fn(Hash(k.Tenant, k.ID))
		return nil
	})
}
