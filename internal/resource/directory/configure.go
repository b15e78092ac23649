package directory

import (
	"bytes"
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/table"
)

// Checks are rules of a kind's policy that its own package knows, such as "the
// JSON Schema compiles".
type Checks map[api.ResourceKind]func(*api.Resource) error

// configure creates a resource, answers it unchanged, or updates it by its exact
// version (contract §2).
func (d *definitions) configure(c *op.Ctx, req *api.ResourcesConfigureRequest) (*api.ResourcesConfigureResponse, error) {
	want := req.Resource()
	key := Name{c.Space.Shard, want.Tenant, want.Database, want.Name}
	old, err := byName.Shared(c.Tx, key)
	if err != nil {
		return nil, err
	}
	if err := mayProtect(c, old, &want); err != nil {
		return nil, err
	}
	if check := d.checks[want.Kind]; check != nil {
		if err := check(&want); err != nil {
			return nil, err
		}
	}
	if old != nil {
		return update(c, key, old, want, req.ExpectedVersion)
	}
	if req.ExpectedVersion != 0 {
		return nil, fault.New(fault.RevisionConflict, "unknown_resource", "there is no resource %q to update; leave expectedVersion out to create it", want.Name)
	}
	id, err := nextNumber(c.Tx, c.Space.Shard)
	if err != nil {
		return nil, err
	}
	// From here on it succeeds.
	want.ID, want.Version = id, 1
	want.CreatedAt, want.UpdatedAt = api.Time(c.Now), api.Time(c.Now)
	if _, err := store(c, key, &want); err != nil {
		return nil, err
	}
	return &api.ResourcesConfigureResponse{Resource: want, Created: true, Changed: true}, nil
}

// mayProtect refuses a change of which fields are protected to who may not
// manage security: otherwise whoever may change a schema could read them all.
func mayProtect(c *op.Ctx, old, want *api.Resource) error {
	var had []api.FieldPolicy
	if old != nil {
		had = old.FieldPolicies
	}
	if slices.Equal(had, want.FieldPolicies) {
		return nil
	}
	return access.Allow(c.Principal, op.Need{
		Capability: api.CapSecurityManage, Tenant: want.Tenant, Database: want.Database, Resource: want.Name,
	})
}

func update(c *op.Ctx, key Name, old *api.Resource, want api.Resource, expected uint64) (*api.ResourcesConfigureResponse, error) {
	switch {
	case old.Deleting:
		return nil, fault.New(fault.Conflict, "being_deleted", "resource %q is being deleted", old.Name)
	case want.Kind != old.Kind:
		return nil, fault.New(fault.Conflict, "kind_is_fixed", "resource %q is a %s; its kind never changes", old.Name, old.Kind)
	case want.Domain != old.Domain:
		return nil, fault.New(fault.Conflict, "domain_is_fixed", "resource %q is bound to domain %q for good", old.Name, old.Domain)
	}
	want.ID, want.Version, want.CreatedAt, want.UpdatedAt = old.ID, old.Version, old.CreatedAt, old.UpdatedAt
	if bytes.Equal(table.EncodeCBOR(nil, &want), table.EncodeCBOR(nil, old)) {
		return &api.ResourcesConfigureResponse{Resource: want}, nil
	}
	if expected != old.Version {
		if expected == 0 {
			return nil, fault.New(fault.RevisionConflict, "exists", "resource %q exists with another configuration; give expectedVersion %d to change it", old.Name, old.Version).
				With("version", "%d", old.Version)
		}
		return nil, fault.New(fault.RevisionConflict, "version", "resource %q has version %d, not %d", old.Name, old.Version, expected).
			With("version", "%d", old.Version)
	}
	if want.Kind == api.KindCollection && !sameIndexes(old.Collection, want.Collection) {
		return nil, fault.New(fault.UnsupportedCapability, "indexes_are_fixed", "the indexes of collection %q were fixed when it was created", old.Name)
	}
	// From here on it succeeds.
	want.Version, want.UpdatedAt = old.Version+1, api.Time(c.Now)
	if _, err := store(c, key, &want); err != nil {
		return nil, err
	}
	return &api.ResourcesConfigureResponse{Resource: want, Changed: true}, nil
}

func sameIndexes(a, b *api.CollectionPolicy) bool {
	x, y := api.CollectionPolicy{Indexes: a.Indexes}, api.CollectionPolicy{Indexes: b.Indexes}
	return bytes.Equal(table.EncodeCBOR(nil, &x), table.EncodeCBOR(nil, &y))
}

// store writes the ruling copy and records the change for the other shards,
// whose revision it returns. What it keeps in memory is a copy: the caller's
// policies belong to the caller.
func store(c *op.Ctx, key Name, r *api.Resource) (uint64, error) {
	own, n := table.Clone(r), nameOf(r)
	byName.Put(c.Tx, key, own)
	byID.Put(c.Tx, numberKey{key.Shard, r.ID}, &n)
	return changes.Append(c, changes.Resource, table.EncodeCBOR(nil, r))
}

func nameOf(r *api.Resource) number {
	return number{Tenant: r.Tenant, Database: r.Database, Name: r.Name, Kind: r.Kind}
}

// nextNumber is one above the greatest number ever given.
func nextNumber(r kv.Reader, shard uint16) (uint32, error) {
	last := uint32(0)
	prefix := table.Space{Shard: shard}.Append(nil)[:2]
	err := byID.Scan(r, table.Range{Prefix: prefix, Reverse: true}, func(k numberKey, _ *number) (bool, error) {
		last = k.ID
		return false, nil
	})
	return last + 1, err
}

// Install writes a changed definition into a data shard, and tells the package
// of its kind.
func Install(c *op.Ctx, record []byte) error {
	var r api.Resource
	if err := table.DecodeCBOR(record, &r); err != nil {
		return err
	}
	key := Name{c.Space.Shard, r.Tenant, r.Database, r.Name}
	old, err := byName.Shared(c.Tx, key)
	if err != nil {
		return err
	}
	byName.Put(c.Tx, key, &r)
	byID.Put(c.Tx, numberKey{c.Space.Shard, r.ID}, &number{Tenant: r.Tenant, Database: r.Database, Name: r.Name, Kind: r.Kind})
	if old == nil {
		return nil
	}
	return c.Registry.Changed(c, old, &r)
}
