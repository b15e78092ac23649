package kv

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrLocked says that another process has the directory open.
var ErrLocked = errors.New("the directory is open in another process")

// ErrMissing says that the directory holds no store and none may be made.
var ErrMissing = errors.New("there is no store")

// ErrCorrupt says that stored bytes failed their checksum or cannot be read as
// what they must be.
var ErrCorrupt = errors.New("stored bytes are damaged")

// ErrFailed says that a write to disk failed earlier and the store has stopped
// accepting writes; it opens again after a restart.
var ErrFailed = errors.New("a write to disk failed; the store stopped")

// Options of a store. The zero value opens a durable store on the real disk.
type Options struct {
	// FS is the file system; nil is the operating system's.
	FS vfs.FS
	// NoSync commits without waiting for the disk: for tests only.
	NoSync bool
	// ReadOnly opens without writing a byte.
	ReadOnly bool
	// MustExist refuses a directory that holds no store.
	MustExist bool
	// CacheBytes is the size of the block cache; 0 is 64 MiB.
	CacheBytes int64
	// Logger gets what Pebble has to say; nil discards it.
	Logger *slog.Logger
}

// Store is one Pebble database.
type Store struct {
	db     *pebble.DB
	opts   Options
	failed atomic.Pointer[error]
	syncs  syncCounter
	once   sync.Once
}

// Open opens or creates the database in dir. Errors: ErrLocked, ErrCorrupt, or
// what the file system said.
func Open(dir string, opts Options) (*Store, error) {
	s := &Store{opts: opts}
	if s.syncs.FS = opts.FS; opts.FS == nil {
		s.syncs.FS = vfs.Default
	}
	po := s.pebbleOptions()
	defer po.Cache.Unref()
	db, err := pebble.Open(dir, po)
	if err != nil {
		return nil, openError(dir, err)
	}
	s.db = db
	return s, nil
}

func openError(dir string, err error) error {
	switch {
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: %s: %v", ErrCorrupt, dir, err)
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return fmt.Errorf("%w: %s", ErrMissing, dir)
	case isLockError(err):
		return fmt.Errorf("%w: %s", ErrLocked, dir)
	default:
		return fmt.Errorf("open %s: %w", dir, err)
	}
}

// pebbleOptions fits Pebble to short-lived keys written once and deleted soon:
// large memtables so that most of them die in memory, bloom filters so that
// "is this id new" reads no block.
func (s *Store) pebbleOptions() *pebble.Options {
	cache := s.opts.CacheBytes
	if cache == 0 {
		cache = 64 << 20
	}
	o := &pebble.Options{
		FS:                          &s.syncs,
		Cache:                       pebble.NewCache(cache),
		FormatMajorVersion:          pebble.FormatNewest,
		ReadOnly:                    s.opts.ReadOnly,
		ErrorIfNotExists:            s.opts.MustExist || s.opts.ReadOnly,
		MemTableSize:                32 << 20,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               64 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      pebbleLogger{s},
	}
	o.Levels[0].FilterPolicy = bloom.FilterPolicy(10)
	return o
}

// Err is ErrFailed with its cause once a write to disk has failed.
func (s *Store) Err() error {
	if p := s.failed.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *Store) fail(cause string) {
	err := fmt.Errorf("%w: %s", ErrFailed, cause)
	s.failed.CompareAndSwap(nil, &err)
}

// Close waits for background work and releases the directory.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		// Pebble panics on leaked iterators; that is a fault of ours worth hearing of.
		err = s.db.Close()
	})
	return err
}

// Flush writes the memtables out, so that the next open replays no log.
func (s *Store) Flush() error { return s.db.Flush() }

// Compact rewrites all of [lower, upper), so that deleted rows free their space.
func (s *Store) Compact(lower, upper []byte) error {
	return s.db.Compact(background(), lower, upper, true)
}

// DiskBytes is the space the database takes on disk, with its logs.
func (s *Store) DiskBytes() uint64 { return s.db.Metrics().DiskSpaceUsage() }

// LogBytesWritten is what was written to the write-ahead log since Open, in
// bytes, with its framing.
func (s *Store) LogBytesWritten() uint64 { return s.db.Metrics().WAL.BytesWritten }

// Metrics describes the levels of the database as text for a person.
func (s *Store) Metrics() string { return s.db.Metrics().String() }
