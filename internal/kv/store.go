package kv

import (
	"context"
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

// ErrFailed says that the store has stopped taking writes, because one to disk
// failed earlier or because background work came upon damage. After a failed
// write it opens again.
var ErrFailed = errors.New("the store has stopped taking writes")

// Options of a store. The zero value opens a durable store on the real disk.
type Options struct {
	// FS is the file system; nil is the operating system's.
	FS vfs.FS
	// NoSync commits without waiting for the disk: for a store whose last entries
	// something else can repeat (then Sync says what need not be), and for tests.
	NoSync bool
	// ReadOnly opens without writing a byte.
	ReadOnly bool
	// MustExist refuses a directory that holds no store.
	MustExist bool
	// CacheBytes is the size of the block cache; 0 is 64 MiB.
	CacheBytes int64
	// Logger gets what Pebble has to say; nil discards it.
	Logger *slog.Logger
	// Inside lets a new store be made in the directory of another one, which leaves
	// it alone.
	Inside bool
	// Of names what is restored, for BeginRestore: up to 64 letters, digits and "-".
	// What is longer or has others is not noted.
	Of string
	// Stage is told of every stage that an entry reaches (see Stages), in the
	// goroutine that reaches it. It may end the process and must not use the store.
	// For tests; nil otherwise.
	Stage func(name string)
}

// Store is one Pebble database.
type Store struct {
	db     *pebble.DB
	opts   Options
	lock   *pebble.Lock
	lent   bool // the lock is that of a restore, which keeps it
	disk   disk
	failed atomic.Pointer[error]
	shared sharedRows
	broken chan struct{} // closed once failed is set
	// closing is closed when Close begins; what waits on a broken store then ends.
	closing chan struct{}
	once    sync.Once
	dir     string
	still   bool // nothing is compacted: a copy that is opened to be closed
	copies  checkpoints
}

// Open opens or creates the database in dir. Errors: ErrLocked, ErrMissing,
// ErrUnfinished, ErrInside for a new one, ErrCorrupt; ErrFailed when a write was
// refused, for want of room perhaps; or what the file system said. After an error nothing runs and the directory is free.
func Open(dir string, opts Options) (*Store, error) {
	s := newStore(dir, opts)
	if err := s.open(verify); err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(dir string, opts Options) *Store {
	s := &Store{opts: opts, broken: make(chan struct{}), closing: make(chan struct{}), dir: dir}
	s.disk.store, s.disk.spare = s, vfs.NewMem()
	s.disk.FS = onDisk(opts)
	s.disk.aside = s.disk.PathJoin(dir, checkpointPrefix)
	return s
}

const (
	memTableBytes = 32 << 20
	memTables     = 4 // that may wait to be flushed
)

// pebbleOptions fits Pebble to short-lived keys written once and deleted soon:
// large memtables so that most of them die in memory, bloom filters so that
// "is this id new" reads no block.
func (s *Store) pebbleOptions() *pebble.Options {
	cache := s.opts.CacheBytes
	if cache == 0 {
		cache = 64 << 20
	}
	room := int64((memTables + 1) * memTableBytes)
	if s.opts.ReadOnly { // nothing is written that could wait
		room = 0
	}
	o := &pebble.Options{
		FS:   &s.disk,
		Lock: s.lock,
		// Pebble takes the memory of memtables, waiting and spare ones included, out
		// of the cache it is given: without this room there would be no cache at all.
		Cache:                       pebble.NewCache(cache + room),
		FormatMajorVersion:          pebble.FormatNewest,
		ReadOnly:                    s.opts.ReadOnly,
		ErrorIfNotExists:            s.opts.MustExist || s.opts.ReadOnly,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               64 << 20,
		DisableAutomaticCompactions: s.still,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      pebbleLogger{s},
		EventListener:               s.listener(),
	}
	o.Levels[0].FilterPolicy = bloom.FilterPolicy(10)
	return o
}

// Err is ErrFailed with its cause once a write to disk has failed; it wraps
// ErrCorrupt when the cause is damage that background work came upon.
func (s *Store) Err() error {
	if p := s.failed.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *Store) fail(cause error) {
	err := fmt.Errorf("%w: %w", ErrFailed, cause)
	if s.failed.CompareAndSwap(nil, &err) {
		close(s.broken)
	}
}

// Close writes the memtables out, waits for background work and releases the
// directory. A store that was closed needs nothing of its logs, so no damage to
// them can lose a row.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		s.copies.end()
		if !s.opts.ReadOnly && s.Err() == nil {
			err = s.Flush()
		}
		close(s.closing)
		err = firstError(err, s.seal(), s.db.Close())
		if err == nil && !s.opts.ReadOnly && s.Err() == nil {
			if cerr := s.disk.logs.clear(&s.disk); cerr != nil {
				s.fail(cerr)
				err = s.Err()
			}
		}
		err = firstError(err, s.unlock())
	})
	return err
}

// seal writes to the log how far it is durable, so that damage to its last
// entries can be told from a power loss.
func (s *Store) seal() error {
	m := s.disk.mark()
	if m == nil || s.Err() != nil {
		return nil
	}
	return s.db.LogData(m, pebble.Sync)
}

// Flush writes the memtables out, so that the next open replays no log.
func (s *Store) Flush() error {
	if err := s.Err(); err != nil {
		return err
	}
	done, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-done:
	case <-s.broken: // a flush that cannot be written is never done
	}
	return s.Err()
}

// Compact rewrites all of [lower, upper), so that deleted rows free their space.
func (s *Store) Compact(lower, upper []byte) error {
	if err := s.Flush(); err != nil {
		return err
	}
	err := s.db.Compact(whileSound{context.Background(), s}, lower, upper, true)
	return firstError(s.Err(), readError(err))
}

// DiskBytes is the space the database takes on disk, with its logs.
func (s *Store) DiskBytes() uint64 { return s.db.Metrics().DiskSpaceUsage() }

// LogBytesWritten is what was written to the write-ahead log since Open, in
// bytes, with its framing.
func (s *Store) LogBytesWritten() uint64 { return s.db.Metrics().WAL.BytesWritten }

// Metrics describes the levels of the database as text for a person.
func (s *Store) Metrics() string { return s.db.Metrics().String() }
