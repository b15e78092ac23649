package engine

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/system"
)

// Caller is who makes a call. Its policy is looked up anew for every call.
type Caller struct{ tenant, principal string }

// Tenant and Principal name the caller; both are empty-tenant "root" for the
// process that opened the store.
func (c *Caller) Tenant() string    { return c.tenant }
func (c *Caller) Principal() string { return c.principal }

// Root is the store's own principal: it may do everything.
func (e *Engine) Root() *Caller { return &Caller{principal: access.Root} }

// As is the caller of a configured principal, for embedding programs that
// narrow their own rights. Whether it exists is decided at each call.
func (e *Engine) As(tenant, principal string) *Caller { return &Caller{tenant, principal} }

// callers remembers policies and keys that were read from the catalog, until
// the catalog changes.
type callers struct {
	mu       sync.RWMutex
	version  uint64 // how often it was forgotten
	policies map[Caller]*api.Principal
	keys     map[[sha256.Size]byte]access.Identity
}

// maxRemembered bounds each map; at the bound it starts anew.
const maxRemembered = 1 << 14

func (c *callers) init() {
	c.policies, c.keys = map[Caller]*api.Principal{}, map[[sha256.Size]byte]access.Identity{}
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
		return &Caller{id.Tenant, id.Principal}, nil
	}
	err := e.enter()
	if err != nil {
		return nil, e.public(err, "")
	}
	defer e.calls.Done()
	if e.read(ctx, system.CatalogShard, func(s *kv.Snapshot) error {
		id, err = access.Authenticate(s, system.CatalogShard, apiKey, e.clock.millis())
		return err
	}); err != nil {
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
	return &Caller{id.Tenant, id.Principal}, nil
}

// policy finds the caller's current policy; nil when it has none.
func (e *Engine) policy(ctx context.Context, who *Caller) (*api.Principal, error) {
	c := &e.callers
	c.mu.RLock()
	p, ok := c.policies[*who]
	version := c.version
	c.mu.RUnlock()
	if ok {
		return p, nil
	}
	err := e.read(ctx, system.CatalogShard, func(s *kv.Snapshot) (err error) {
		p, err = access.Find(s, system.CatalogShard, who.tenant, who.principal)
		return err
	})
	if err != nil || p == nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		if len(c.policies) >= maxRemembered {
			clear(c.policies)
		}
		c.policies[*who] = p
	}
	return p, nil
}

// read runs fn on a snapshot of a shard and returns once everything it can have
// seen is durable. fn may run twice; the last run counts.
func (e *Engine) read(ctx context.Context, shard uint16, fn func(*kv.Snapshot) error) error {
	return e.log.Read(ctx, shard, fn)
}
