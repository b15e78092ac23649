package keyload

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/membership"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/tenure"
)

// Version is the version of this program.
const Version = "0.1.0"

// Options of an embedded store. The zero value is the safe default.
type Options struct {
	// Shards is the number of shards of a new store, 1 to 64; 0 is 8. It is fixed
	// when the store is made. More shards let more cores work at once.
	Shards int
	// Durability is api.DurableDisk unless a test can live with
	// api.DurableProcess, which survives the process but not a power loss.
	Durability api.Durability
	// CacheBytes is the memory for cached blocks; 0 is 64 MiB.
	CacheBytes int64
	// Clock is the wall clock; nil is the machine's. For tests: a clock that is
	// given is believed whatever it says.
	Clock func() time.Time
	// Logger gets what the store has to say; nil discards it.
	Logger *slog.Logger
	// MustExist refuses a directory that holds no store, instead of making one.
	MustExist bool
}

// DB is an open store, acting as its root principal. It is safe for concurrent
// use.
type DB struct {
	Session
	store  *kv.Store
	engine *engine.Engine
	due    *tenure.Service
	backup *backup.Maker
}

// Open opens the store in a directory, making both when they do not exist. At
// most one process can have a store open. Errors: Conflict (reason
// store_in_use), Corruption, FormatUnsupported, RecoveryRequired.
func Open(dir string, options ...Options) (*DB, error) {
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	if o.Shards < 0 || o.Shards > maxShards {
		return nil, fault.Invalid("/shards", "must be 1 to %d, or 0 for %d", maxShards, engine.DefaultShards)
	}
	store, err := kv.Open(dir, kv.Options{
		NoSync: o.Durability == api.DurableProcess, CacheBytes: o.CacheBytes, Logger: o.Logger, MustExist: o.MustExist,
	})
	if err != nil {
		return nil, engine.OpenFault(dir, err)
	}
	return OpenStore(store, o)
}

// maxShards bounds Options.Shards.
const maxShards = 64

// OpenStore is Open on a store below that is already open; Close closes it. It
// is for programs inside this module, such as crash tests.
func OpenStore(store *kv.Store, o Options) (*DB, error) {
	return OpenMember(store, o, Member{Status: membership.Handler(func() *membership.Service { return nil })})
}

// Member is what makes a store one of a cluster's.
type Member struct {
	Log    func(commitlog.Config) (commitlog.Log, error)
	Peers  engine.Peers
	Status op.Handler // of cluster.status
	// MayGo refuses requests that would let a node go which is needed; nil refuses none.
	MayGo func(req any) error
	// ClockWatched lets a clock that is given be watched as the machine's is.
	ClockWatched bool
}

// OpenMember is OpenStore on the state of a member of a cluster, for the server.
func OpenMember(store *kv.Store, o Options, m Member) (*DB, error) {
	e, err := engine.Open(engine.Config{
		Store: store, Shards: uint16(o.Shards), Durability: o.Durability, Now: o.Clock, Version: Version, Logger: o.Logger,
		Handlers: []op.Handler{check.Handler(), m.Status}, Log: m.Log, Peers: m.Peers, MayGo: m.MayGo, NowWatched: m.ClockWatched,
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	db := &DB{store: store, engine: e, due: tenure.Start(e, logger), backup: backup.New(e, Version)}
	db.Session = newSession(e, e.Root())
	return db, nil
}

// As is the same store with the rights of a configured principal, which are
// looked up at every call.
func (db *DB) As(tenant, principal string) Session {
	return newSession(db.engine, db.engine.As(tenant, principal))
}

// Backup writes a backup of the whole store as it is at one moment within the
// call, and answers its id, which stands for all of it: note it. Writes go on
// meanwhile. "keyload restore" makes a store of what was written; after an error
// it is no backup. It holds all data and the hashes of all keys. Errors:
// ResourceExhausted (reasons backup_running, no_room), Corruption,
// OwnershipLost, Cancelled, RecoveryRequired.
func (db *DB) Backup(ctx context.Context, w io.Writer) (id string, err error) {
	b, err := db.backup.Create(ctx, w, nil)
	if err != nil {
		return "", err
	}
	return b.ID, nil
}

// Backups makes the backups of the store, for gateways inside this module.
func (db *DB) Backups() *backup.Maker { return db.backup }

// Engine is the door of the store, for gateways inside this module.
func (db *DB) Engine() *engine.Engine { return db.engine }

// Close ends waiting calls, lets the others finish, and releases the directory.
// Calls after it are refused with OwnershipLost (reason store_closed). Closing
// again does nothing.
func (db *DB) Close() error {
	db.due.Close()
	return errors.Join(db.engine.Close(), db.store.Close())
}

// Session is an open store with the rights of one principal. It has the same
// typed calls as a remote client.
type Session struct {
	client.Calls
	caller caller
}

type caller struct {
	engine *engine.Engine
	who    *engine.Caller
}

func newSession(e *engine.Engine, who *engine.Caller) Session {
	c := caller{e, who}
	return Session{Calls: client.CallsOf(c), caller: c}
}

// Do implements api.Doer.
func (s Session) Do(ctx context.Context, o *api.Operation, req, resp any) error {
	return s.caller.Do(ctx, o, req, resp)
}

// Do implements api.Doer.
func (c caller) Do(ctx context.Context, o *api.Operation, req, resp any) error {
	got, err := c.engine.Do(ctx, c.who, o, req)
	if err != nil {
		return err
	}
	reflect.ValueOf(resp).Elem().Set(reflect.ValueOf(got).Elem())
	return nil
}
