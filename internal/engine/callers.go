package engine

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/system"
)

// Caller is who makes a call. Its policy is looked up anew for every call.
type Caller struct {
	tenant, principal string
	key               string // id of the API key that proved it; empty without one
}

// Tenant and Principal name the caller; both are empty-tenant "root" for the
// process that opened the store.
func (c *Caller) Tenant() string    { return c.tenant }
func (c *Caller) Principal() string { return c.principal }

// Root is the store's own principal: it may do everything.
func (e *Engine) Root() *Caller { return &Caller{principal: access.Root} }

// As is the caller of a configured principal, for embedding programs that
// narrow their own rights. Whether it exists is decided at each call.
func (e *Engine) As(tenant, principal string) *Caller {
	return &Caller{tenant: tenant, principal: principal}
}

// callers remembers policies and keys that were read from the catalog, until
// the catalog changes.
type callers struct {
	mu       sync.RWMutex
	version  uint64 // how often it was forgotten
	policies map[Caller]known
	keys     map[[sha256.Size]byte]access.Identity
}

// known is the policy of a caller, for as long as its key holds.
type known struct {
	policy   *api.Principal
	expires  api.Time // of the key; 0 is never
	revision uint64   // of the catalog that it was read from
}

// maxRemembered bounds each map; at the bound it starts anew.
const maxRemembered = 1 << 14

func (c *callers) init() {
	c.policies, c.keys = map[Caller]known{}, map[[sha256.Size]byte]access.Identity{}
}

// forget is called after every commit of the catalog shard and before its
// answer, so that a revocation holds when the call returns.
func (c *callers) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	clear(c.policies)
	clear(c.keys)
}

// Authenticate finds the caller of an API key. Every failure is the same
// Unauthenticated.
func (e *Engine) Authenticate(ctx context.Context, apiKey string) (*Caller, error) {
	sum := sha256.Sum256([]byte(apiKey))
	c := &e.callers
	c.mu.RLock()
	id, ok := c.keys[sum]
	version := c.version
	c.mu.RUnlock()
	if ok && (id.ExpiresAt == 0 || int64(id.ExpiresAt) > e.clock.millis()) {
		return &Caller{id.Tenant, id.Principal, id.KeyID}, nil
	}
	err := e.enter()
	if err != nil {
		return nil, e.public(err, "")
	}
	defer e.calls.Done()
	err = e.read(ctx, system.CatalogShard, func(s *kv.Snapshot) (err error) {
		id, err = access.Authenticate(s, system.CatalogShard, apiKey, e.clock.millis())
		return err
	})
	if err != nil {
		return nil, e.public(err, "")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		if len(c.keys) >= maxRemembered {
			clear(c.keys)
		}
		c.keys[sum] = id
	}
	return &Caller{id.Tenant, id.Principal, id.KeyID}, nil
}

// policy finds the caller's policy; nil when it has none. What the catalog had
// acknowledged when the call began is seen, on whichever node: a key or a policy that
// was revoked is refused from then on.
func (e *Engine) policy(ctx context.Context, who *Caller) (*api.Principal, error) {
	if e.cluster != nil {
		if err := e.read(ctx, system.CatalogShard, func(*kv.Snapshot) error { return nil }); err != nil {
			return nil, err
		}
	}
	k, err := e.find(ctx, who, e.read, 0)
	return k.policy, err
}

// policyAt is policy by what this node has, for a write to a shard that it leads. It
// is as good as policy: no change of a policy or a key is acknowledged before every
// shard has its revision, and whoever leads a shard has all that the shard was given.
// So a catalog here that is no older than the shard shows every such change; a node
// that leads no more, and does not know it, gets nothing committed. known is false
// where the catalog here is older.
func (e *Engine) policyAt(ctx context.Context, who *Caller, shard uint16) (p *api.Principal, known bool, err error) {
	needs, err := revisionOf(e.store, shard)
	if err != nil {
		return nil, false, err
	}
	k, err := e.find(ctx, who, here{e}.read, needs)
	return k.policy, err == nil && k.revision >= needs, err
}

// find is the policy of a caller in the catalog, remembered from a revision that is
// no older than the one needed, or read.
func (e *Engine) find(ctx context.Context, who *Caller, read func(context.Context, uint16, func(*kv.Snapshot) error) error, needs uint64) (known, error) {
	c := &e.callers
	c.mu.RLock()
	k, ok := c.policies[*who]
	version := c.version
	c.mu.RUnlock()
	if ok && k.revision >= needs && (k.expires == 0 || int64(k.expires) > e.clock.millis()) {
		return k, nil
	}
	err := read(ctx, system.CatalogShard, func(s *kv.Snapshot) (err error) {
		if k, err = look(s, who, e.clock.millis()); err == nil {
			k.revision, err = changes.Revision(s, system.CatalogShard)
		}
		return err
	})
	if err != nil || k.policy == nil {
		return k, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		if len(c.policies) >= maxRemembered {
			clear(c.policies)
		}
		c.policies[*who] = k
	}
	return k, nil
}

// look reads the policy of a caller, and whether its key holds at now (milliseconds).
func look(s *kv.Snapshot, who *Caller, now int64) (k known, err error) {
	if who.key != "" {
		var holds bool
		if holds, k.expires, err = access.KeyHolds(s, system.CatalogShard, who.tenant, who.key, now); err != nil {
			return k, err
		}
		if !holds {
			return k, access.BadKey()
		}
	}
	k.policy, err = access.Find(s, system.CatalogShard, who.tenant, who.principal)
	return k, err
}

// read runs fn on a snapshot of a shard and returns once everything it can have
// seen is durable. fn may run twice; the last run counts.
func (e *Engine) read(ctx context.Context, shard uint16, fn func(*kv.Snapshot) error) error {
	return e.log.Read(ctx, shard, fn)
}

// here is a node by itself: what it says of itself must not need the others.
type here struct{ *Engine }

// read runs fn on what this node has, whether or not it is the newest.
func (e here) read(ctx context.Context, shard uint16, fn func(*kv.Snapshot) error) error {
	if e.cluster == nil {
		return e.Engine.read(ctx, shard, fn)
	}
	s := e.store.NewSnapshot()
	defer s.Close()
	return fn(s)
}
