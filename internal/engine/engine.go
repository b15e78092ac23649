package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/catalog"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/solo"
	"github.com/keyload/keyload/internal/token"
	"github.com/keyload/keyload/internal/wake"
)

// DefaultShards is how many data shards a new store gets. A store keeps its
// number for good.
const DefaultShards = 8

// Config says what an engine runs on.
type Config struct {
	Store *kv.Store
	// Shards is the number of data shards of a new store; 0 is DefaultShards.
	Shards uint16
	// Durability is what receipts promise; it must be true of the store.
	Durability api.Durability
	// Now is the wall clock; nil is the machine's. One that is given is believed
	// whatever it says, unless NowWatched says that it is to be watched as the
	// machine's is.
	Now        func() time.Time
	NowWatched bool
	// Version names the program in admin.status.
	Version string
	Logger  *slog.Logger
	// Handlers are those of operations that the node itself answers, beside its own.
	Handlers []op.Handler

	// Log opens the log; nil is that of one node.
	Log func(commitlog.Config) (commitlog.Log, error)
	// Peers reaches the other nodes of a cluster; nil on a store that runs alone.
	Peers Peers
	// MayGo refuses requests that would let a node go which its cluster cannot do
	// without; nil refuses none. Errors are *fault.Error.
	MayGo func(req any) error

	// copied says that a store of an older format is a copy itself, so that none
	// need be kept.
	copied bool
}

// Engine is an open store. It is safe for concurrent use.
type Engine struct {
	cfg       Config
	store     *kv.Store
	log       commitlog.Log
	registry  *op.Registry
	identity  system.Identity
	tokens    *token.Sealer
	hub       *wake.Hub
	clock     *clock
	admission admission
	queries   turns
	preparing chan struct{} // holds a value for each large command that is being checked and encoded
	parked    seats
	callers   callers
	closing   chan struct{}
	gate      sync.Mutex // guards closed, and calls against it
	closed    bool
	calls     sync.WaitGroup // calls under way
	cluster   *cluster       // nil on a store that runs alone
	leading   sync.WaitGroup // what a new leader of the catalog does
	propagate chan struct{}  // holds one value: the right to bring changes to the shards
	started   time.Time
	logger    *slog.Logger
}

// Open starts the shards of a store, making its identity first if it is new.
// Errors are *fault.Error: FormatUnsupported for a store of a newer program,
// Corruption for damaged bytes.
func Open(cfg Config) (*Engine, error) {
	e := &Engine{
		cfg: cfg, store: cfg.Store, hub: wake.NewHub(), clock: newClock(cfg.Now, cfg.NowWatched),
		closing: make(chan struct{}), propagate: make(chan struct{}, 1), logger: cfg.Logger,
	}
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	if e.cfg.Durability == "" {
		e.cfg.Durability = api.DurableDisk
	}
	e.preparing = make(chan struct{}, preparers())
	e.queries.running.max, e.queries.waiting.max = limits.QueriesRunning, limits.QueriesWaiting
	e.parked.max = limits.ParkedCalls
	e.started = e.clock.now()
	e.propagate <- struct{}{}
	e.callers.init()
	if err := open(e); err != nil {
		return nil, OpenFault("this directory", err)
	}
	return e, nil
}

func open(e *Engine) error {
	var err error
	if e.identity, err = Identify(e.store, e.cfg.Shards, e.clock.millis()); err != nil {
		return err
	}
	if e.cfg.Log == nil {
		if err := Alone(e.store, e.identity.Shards); err != nil {
			return err
		}
	}
	if e.identity.Format < system.Format {
		if err := upgrade(e); err != nil {
			return err
		}
	}
	e.tokens = token.NewSealer(e.identity.Incarnation, e.identity.TokenKeys)
	status := op.Ask(api.AdminStatus, op.Query[api.AdminStatusRequest, api.AdminStatusResponse]{
		Run: func(*op.View, *api.AdminStatusRequest) (*api.AdminStatusResponse, error) { return e.Status(), nil },
	})
	if e.registry, err = Registry(e.cfg.Durability, append(slices.Clone(e.cfg.Handlers), status)...); err != nil {
		return err
	}
	if e.cfg.Peers != nil {
		e.cluster = &cluster{peers: e.cfg.Peers, opened: make(chan struct{}), closing: e.closing}
	}
	openLog := e.cfg.Log
	if openLog == nil {
		openLog = func(cfg commitlog.Config) (commitlog.Log, error) { return solo.Open(cfg) }
	}
	e.log, err = openLog(commitlog.Config{
		Store:   e.store,
		Machine: machine.Config{Incarnation: e.identity.Incarnation, Durability: e.cfg.Durability, Registry: e.registry},
		Shards:  e.identity.Shards, Now: e.clock.millis, Seed: seed,
		Hint: func(h op.Hint) { e.hub.Wake(h.Key, h.Count) },
		Applied: func(shard uint16) {
			if shard == system.CatalogShard {
				e.callers.forget()
			}
		},
		Led: spread{e}.led,
	})
	if err != nil {
		return err
	}
	if e.cluster != nil {
		e.cluster.log = e.log
		close(e.cluster.opened)
		return nil // the leader of the catalog does the rest
	}
	if err := (spread{e}).thaw(context.Background()); err != nil {
		return errors.Join(err, e.log.Close())
	}
	return nil
}

// Registry makes the registry of every operation; extra handlers are those of
// the node itself.
func Registry(durability api.Durability, extra ...op.Handler) (*op.Registry, error) {
	resources := append(catalog.Resources(), machine.Resource(durability), op.Resource{Name: "node", Handlers: extra})
	return op.NewRegistry(resources)
}

// Identify reads the identity of a store, and makes one when the store is new.
func Identify(s *kv.Store, shards uint16, now int64) (system.Identity, error) {
	tx := s.NewTx()
	defer tx.Close()
	id, ok, err := system.ReadIdentity(tx)
	switch {
	case err != nil:
		return id, err
	case ok && id.Format > system.Format:
		return id, fault.New(fault.FormatUnsupported, "newer_format",
			"the store has format %d; this program knows formats up to %d. Use the program that wrote it, or a newer one", id.Format, system.Format)
	case ok:
		return id, nil
	}
	if shards == 0 {
		shards = DefaultShards
	}
	id = newIdentity(shards, now)
	return id, writeIdentity(s, id)
}

func seed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// OpenFault turns what stopped the opening of a store's directory into the
// contract's codes.
func OpenFault(dir string, err error) error {
	switch {
	case fault.From(err) != nil:
		return err
	case errors.Is(err, kv.ErrLocked):
		return fault.New(fault.Conflict, "store_in_use", "the store in %s is open in another process; use that one, or stop it first", dir)
	case errors.Is(err, kv.ErrMissing):
		return fault.New(fault.NotFound, "no_store", "there is no store in %s; make one with keyload init", dir)
	case errors.Is(err, kv.ErrUnmade):
		return fault.New(fault.RecoveryRequired, "init_unfinished", "the making of a new store in %s was begun and not finished, so there is no store, and nothing was in it; make it again", dir)
	case errors.Is(err, kv.ErrUnfinished):
		return fault.New(fault.RecoveryRequired, "restore_unfinished", "a restore into %s was begun and not finished, so there is no store; restore into it again, or remove the directory", dir)
	case kv.Unusable(err):
		return fault.New(fault.Validation, "directory_unusable", "%s cannot be the directory of a store: %v. Nothing was changed", dir, err)
	case errors.Is(err, kv.ErrCorrupt):
		return fault.New(fault.Corruption, "damaged_store", "%v. Nothing was changed; restore a backup, or keep a copy of the directory and run keyload check", err)
	}
	return fault.New(fault.RecoveryRequired, "open_failed", "%v", err)
}

// Close ends long polls, lets the calls under way finish, and stops the shards.
// Later calls are refused. It does not close the store.
func (e *Engine) Close() error {
	e.gate.Lock()
	again := e.closed
	e.closed = true
	e.gate.Unlock()
	if again {
		return nil
	}
	close(e.closing)
	e.calls.Wait()
	err := e.log.Close()
	e.leading.Wait()
	return err
}

// enter counts a call under way; calls.Done must be called after it.
func (e *Engine) enter() error {
	e.gate.Lock()
	defer e.gate.Unlock()
	if e.closed {
		return fault.New(fault.OwnershipLost, "store_closed", "the store is closed; nothing happened")
	}
	e.calls.Add(1)
	return nil
}

// Ready is nil when the node accepts work, else why it does not.
func (e *Engine) Ready() error {
	for i := uint16(0); i <= e.identity.Shards; i++ {
		st := e.log.Status(i)
		if st.Err != nil {
			return commitlog.Stopped(i, st.Err)
		}
		if e.cluster != nil && st.Leader == 0 {
			return noLeader(i)
		}
	}
	return e.clock.trusted()
}

// Registry is the frozen set of operations.
func (e *Engine) Registry() *op.Registry { return e.registry }

// Identity is what the store is.
func (e *Engine) Identity() system.Identity { return e.identity }

// Store is the store below, for checks and benches.
func (e *Engine) Store() *kv.Store { return e.store }

// Shards is how many data shards there are; they are numbered from 1.
func (e *Engine) Shards() uint16 { return e.identity.Shards }

// Status sums up the node and its shards.
func (e *Engine) Status() *api.AdminStatusResponse {
	now := e.clock.now()
	s := &api.AdminStatusResponse{
		Version: e.cfg.Version, Incarnation: uuid.UUID(e.identity.Incarnation).String(), Format: e.identity.Format,
		Durability: e.cfg.Durability, StartedAt: api.TimeOf(e.started), UptimeMillis: now.Sub(e.started).Milliseconds(),
		Ready: true, StoredBytes: int64(e.store.DiskBytes()),
	}
	if err := e.Ready(); err != nil {
		s.Ready, s.Reason = false, fault.From(err).Detail
	}
	for i := uint16(0); i <= e.identity.Shards; i++ {
		st := e.log.Status(i)
		sh := api.ShardStatus{
			Shard: uint32(i), Catalog: i == system.CatalogShard, Position: st.Position, DurablePosition: st.Durable,
			Digest: fmt.Sprintf("%016x", st.Digest), LoggedTime: api.Time(st.Time),
		}
		var err error
		if sh.CatalogVersion, err = revisionOf(e.store, i); err != nil {
			e.logger.Error("catalog revision", "shard", i, "error", err.Error())
		}
		if st.Err != nil {
			sh.Failure = st.Err.Error()
		}
		s.Shards = append(s.Shards, sh)
	}
	return s
}

// revisionOf is the catalog revision a shard has, applied entries included.
func revisionOf(store *kv.Store, shard uint16) (uint64, error) {
	s := store.NewSnapshot()
	defer s.Close()
	return changes.Revision(s, shard)
}
