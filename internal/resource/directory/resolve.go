package directory

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Resolve finds the resource a request names in the scope's partition. The
// definition is shared: it must not be changed. Errors: NotFound when there is
// none, Conflict when it is bound to another domain, Validation when it is of
// another kind, DispatchPaused (not recorded) while it may be deleted.
func Resolve(s *op.Scope, name string, kind api.ResourceKind) (*api.Resource, table.Owner, error) {
	r, err := Lookup(s.R, s.Space.Shard, s.Partition.Tenant, s.Partition.Database, name)
	if err != nil {
		return nil, table.Owner{}, err
	}
	switch {
	case r == nil:
		err = fault.New(fault.NotFound, "unknown_resource", "there is no resource %q in database %q; create it with resources.configure", name, s.Partition.Database)
	case r.Domain != s.Partition.Domain:
		err = fault.New(fault.Conflict, "foreign_domain", "resource %q is bound to domain %q, not to %q", name, r.Domain, s.Partition.Domain)
	case r.Kind != kind:
		err = fault.New(fault.Validation, "wrong_kind", "resource %q is a %s, not a %s", name, r.Kind, kind)
	case r.Deleting:
		f := fault.New(fault.DispatchPaused, "being_deleted", "resource %q is stopped while it is decided whether it can be deleted; try again in a moment", name)
		f.RetryAfterMillis = 100
		err = f
	default:
		return r, table.Owner{Space: s.Space, Resource: r.ID}, nil
	}
	return nil, table.Owner{}, err
}

// Lookup finds a definition by name; nil when there is none.
func Lookup(r kv.Reader, shard uint16, tenant, database, name string) (*api.Resource, error) {
	return byName.Shared(r, Name{shard, tenant, database, name})
}

// ByID finds a definition by its number; nil when there is none (any more).
func ByID(r kv.Reader, shard uint16, id uint32) (*api.Resource, error) {
	n, err := byID.Shared(r, numberKey{shard, id})
	if err != nil || n == nil || n.Gone {
		return nil, err
	}
	return Lookup(r, shard, n.Tenant, n.Database, n.Name)
}
