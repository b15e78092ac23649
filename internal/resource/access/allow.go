package access

import (
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
)

// Root is the principal of the process that opened the store, and System the
// one of the store's own commands. Neither is stored; their empty tenant cannot
// be configured, so nobody else can be them.
const (
	Root   = "root"
	System = "system"
)

// root has every right; its policy never changes.
var root = &api.Principal{ID: Root, Administrator: true, PolicyEpoch: 1}

// Find returns the policy of a principal; nil when it is not known. The result
// is shared: it must not be changed.
func Find(r kv.Reader, shard uint16, tenant, id string) (*api.Principal, error) {
	if tenant == "" && (id == Root || id == System) {
		return root, nil
	}
	return principals.Shared(r, principalKey{shard, tenant, id})
}

// Active refuses a principal that is unknown, revoked or expired at now
// (milliseconds).
func Active(p *api.Principal, now int64) error {
	switch {
	case p == nil:
		return fault.New(fault.PermissionDenied, "unknown_principal", "the caller's principal does not exist")
	case p.Revoked:
		return fault.New(fault.PermissionDenied, "principal_revoked", "the caller's principal is revoked")
	case p.ExpiresAt != 0 && int64(p.ExpiresAt) <= now:
		return fault.New(fault.PermissionDenied, "principal_expired", "the caller's principal expired at %s", p.ExpiresAt)
	}
	return nil
}

// Allow refuses unless the principal has the capability on the resource: as
// administrator, by a role (everything of its own tenant), or by a grant. The
// need api.CapAnyMutation is met by any of several capabilities on anything of
// the database.
func Allow(p *api.Principal, n op.Need) error {
	if p.Administrator {
		return nil
	}
	if n.Tenant == "" || n.Tenant != p.Tenant {
		return denied(n)
	}
	if n.Capability == api.CapAnyMutation {
		return allowAnyMutation(p, n)
	}
	for _, role := range p.Roles {
		if slices.Contains(api.RoleCapabilities(role), n.Capability) {
			return nil
		}
	}
	for _, g := range p.Grants {
		if grants(g, n) {
			return nil
		}
	}
	return denied(n)
}

func allowAnyMutation(p *api.Principal, n op.Need) error {
	writes := append(api.MutationCapabilities(), api.AnyName)
	some := func(of []api.Capability) bool {
		return slices.ContainsFunc(writes, func(c api.Capability) bool { return slices.Contains(of, c) })
	}
	for _, role := range p.Roles {
		if some(api.RoleCapabilities(role)) {
			return nil
		}
	}
	for _, g := range p.Grants {
		if covers(g.Database, n.Database) && some(g.Capabilities) {
			return nil
		}
	}
	return denied(n)
}

func grants(g api.Grant, n op.Need) bool {
	return covers(g.Database, n.Database) && covers(g.Resource, n.Resource) &&
		(slices.Contains(g.Capabilities, n.Capability) || slices.Contains(g.Capabilities, "*"))
}

// denied names the missing capability, never another tenant's things.
func denied(n op.Need) error {
	return fault.New(fault.PermissionDenied, "missing_capability", "the caller lacks the capability %s for this", n.Capability)
}
