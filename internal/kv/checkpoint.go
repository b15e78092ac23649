package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkpointPrefix begins the names of the directories of checkpoints, which are
// in the directory of their store so that a hard link reaches there.
const checkpointPrefix = "checkpoint-"

// checkpointRoom is how much room a disk must have left, in bytes, for a
// checkpoint to begin: what it copies is the log since the last flush, and a
// backup must not be what fills the disk of a store.
const checkpointRoom = 64 << 20

// ErrNoRoom says that a checkpoint was not begun because the disk has too little
// room left.
var ErrNoRoom = errors.New("the disk has too little room left")

// ErrCheckpoint says that a checkpoint could not be made. The store is as it was.
var ErrCheckpoint = errors.New("no checkpoint could be made; the store goes on")

// Checkpoint is a copy of a store as it was at one moment, all shards at the same
// one. Its files never change. It takes hardly any room at first; tables that the
// store deletes stay until Close. Safe for concurrent use.
type Checkpoint struct {
	store *Store
	home  string // the directory that Close removes
	files []File
	once  sync.Once
	err   error
}

// File is one file of a checkpoint.
type File struct {
	Name  string // within the directory of the store, without any separator
	Bytes int64
}

// checkpoints are those of a store that are open. The zero value is ready.
type checkpoints struct {
	mu    sync.Mutex
	last  int
	open  []*Checkpoint
	ended bool
	// making is held for reading while the database makes one, and for writing
	// before it is closed.
	making sync.RWMutex
}

// Checkpoint copies the store as it is at a moment within the call: everything
// that was durable before the call is in it, and everything in it is durable when
// the call returns. Writers are not held up but for the few instants in which the
// database notes what it has. Errors: ErrNoRoom, ErrCorrupt for damage it came
// upon, ErrFailed when the store has failed, ErrCheckpoint for anything that
// happened to the copy alone, or the cause of ctx.
func (s *Store) Checkpoint(ctx context.Context) (*Checkpoint, error) {
	s.copies.making.RLock()
	defer s.copies.making.RUnlock()
	if err := s.Err(); err != nil {
		return nil, err
	}
	if s.opts.ReadOnly {
		return nil, fmt.Errorf("%w: the store is open for reading only", ErrCheckpoint)
	}
	if use, err := s.disk.GetDiskUsage(s.dir); err == nil && use.AvailBytes < checkpointRoom {
		return nil, fmt.Errorf("%w: %d bytes, and %d are wanted", ErrNoRoom, use.AvailBytes, uint64(checkpointRoom))
	}
	c, err := newCheckpoint(s)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{s.Flush, c.copy, c.settle, c.list} {
		err := context.Cause(ctx)
		if err == nil {
			err = step()
		}
		if err != nil {
			_ = c.Close() // what is left is removed by the next Open
			return nil, err
		}
	}
	return c, nil
}

// newCheckpoint makes the directory. Names are numbered: only who holds the lock
// of the store's directory makes any.
func newCheckpoint(s *Store) (*Checkpoint, error) {
	s.copies.mu.Lock()
	defer s.copies.mu.Unlock()
	if s.copies.ended {
		return nil, fmt.Errorf("%w: the store is closed", ErrCheckpoint)
	}
	below := s.disk.FS
	for {
		s.copies.last++
		home := fmt.Sprintf("%s%d", s.disk.aside, s.copies.last)
		if _, err := below.Stat(home); err == nil {
			continue // it could not be removed when the store was opened
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, apartError(err)
		}
		if err := below.MkdirAll(home, 0o700); err != nil {
			return nil, apartError(err)
		}
		c := &Checkpoint{store: s, home: home}
		s.copies.open = append(s.copies.open, c)
		return c, nil
	}
}

// dir is where the copy is. It stands one below home, because Pebble syncs the
// directory it makes the copy in, and that of the store is none of its business.
func (c *Checkpoint) dir() string { return c.store.disk.PathJoin(c.home, "db") }

// copy has Pebble link the tables and copy the logs and the manifest.
func (c *Checkpoint) copy() error {
	s := c.store
	log, edits := s.disk.logAt.Load(), s.disk.editsAt.Load()
	if err := c.proveManifest(s.dir, edits); err != nil {
		return err
	}
	if err := s.db.Checkpoint(c.dir()); err != nil {
		return firstError(s.Err(), apartError(err))
	}
	// What it copied of a manifest that goes nowhere since a write failed is not
	// the state. And a copy must not tell of anything that the store can still lose.
	if err := firstError(s.Err(), s.db.LogData(nil, pebble.Sync), s.Err()); err != nil {
		return err
	}
	return firstError(c.trimLog(log), c.proveManifest(c.dir(), edits))
}

// trimLog cuts the newest log of the copy where what was written ends. It was
// copied while it was being written, block by block, so it may have a later block
// and not all of one before it.
func (c *Checkpoint) trimLog(durable *synced) error {
	below := c.store.disk.FS
	number := uint64(0)
	names, err := below.List(c.dir())
	for _, name := range names {
		if n, ok := logNumber(name); ok {
			number = max(number, n)
		}
	}
	if err != nil || number == 0 {
		return apartError(err)
	}
	path := below.PathJoin(c.dir(), logName(number))
	end, err := (&recordFile{below, path, number}).readable(nil)
	if err != nil {
		return apartError(err)
	}
	if durable != nil && durable.number == number && uint64(end) < durable.bytes {
		return damaged(below.PathJoin(c.store.dir, logName(number)), "bytes from %d on cannot be read, and they were durable up to %d", end, durable.bytes)
	}
	short := below.PathJoin(c.home, "log")
	if err := vfs.LimitedCopy(below, path, short, end); err != nil {
		return apartError(err)
	}
	return apartError(below.Rename(short, path))
}

// proveManifest makes sure that every edit that was durable can be read in dir.
func (c *Checkpoint) proveManifest(dir string, durable *synced) error {
	if durable == nil {
		return nil
	}
	below := c.store.disk.FS
	name := fmt.Sprintf("MANIFEST-%06d", durable.number)
	end, err := (&recordFile{below, below.PathJoin(dir, name), 0}).readable(nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is a newer one
	}
	if err == nil && uint64(end) < durable.bytes {
		return damaged(below.PathJoin(c.store.dir, name), "bytes from %d on cannot be read, and they were durable up to %d", end, durable.bytes)
	}
	return apartError(err)
}

// settle opens the copy once and closes it, so that what its logs hold is in
// tables. The log's marks speak of the store's manifest, not of the copy's; that
// nothing is missing was proved by copy.
func (c *Checkpoint) settle() error {
	inner := newStore(c.dir(), Options{FS: c.store.disk.FS, MustExist: true, CacheBytes: 1 << 20})
	inner.still = true
	err := inner.open(func(vfs.FS, string, string, []string) error { return nil })
	if err == nil {
		err = inner.Close()
	}
	return apartError(firstError(err, inner.Err()))
}

// list takes down what a store needs that was closed: no log.
func (c *Checkpoint) list() error {
	below := c.store.disk.FS
	names, err := below.List(c.dir())
	if err != nil {
		return apartError(err)
	}
	slices.Sort(names)
	for _, name := range names {
		path := below.PathJoin(c.dir(), name)
		if _, isLog := logNumber(name); isLog || name == "LOCK" {
			if err := below.Remove(path); err != nil {
				return apartError(err)
			}
			continue
		}
		info, err := below.Stat(path)
		if err != nil {
			return apartError(err)
		}
		c.files = append(c.files, File{name, info.Size()})
	}
	return nil
}

// Files are the files of the copy, sorted by name. A directory with exactly these
// is a store that was closed.
func (c *Checkpoint) Files() []File { return slices.Clone(c.files) }

// Open opens one of Files for reading from its beginning.
func (c *Checkpoint) Open(name string) (io.ReadCloser, error) {
	if !slices.ContainsFunc(c.files, func(f File) bool { return f.Name == name }) {
		return nil, fmt.Errorf("%w: the checkpoint has no file %q", fs.ErrNotExist, name)
	}
	return c.store.disk.FS.Open(c.store.disk.PathJoin(c.dir(), name), vfs.SequentialReadsOption)
}

// Store opens the copy for reading. Close it before the checkpoint.
func (c *Checkpoint) Store() (*Store, error) {
	return Open(c.dir(), Options{FS: c.store.disk.FS, ReadOnly: true, CacheBytes: 1 << 20})
}

// Keep gives the copy a name in the directory of the store, where it stays after
// Close and can be opened as a store of its own. A copy that had the name is replaced.
// It takes the room of what the store rewrites from then on.
func (c *Checkpoint) Keep(name string) error {
	below := c.store.disk.FS
	if name != below.PathBase(name) || strings.HasPrefix(name, checkpointPrefix) {
		return fmt.Errorf("%w: %q is no name for it", ErrCheckpoint, name)
	}
	to := below.PathJoin(c.store.dir, name)
	if _, err := below.Stat(to); err == nil && !holdsStore(below, to) {
		return fmt.Errorf("%w: there is something at %s that is no copy of a store; it was left as it is", ErrCheckpoint, to)
	}
	if err := below.RemoveAll(to); err != nil {
		return apartError(err)
	}
	return apartError(firstError(below.Rename(c.dir(), to), c.store.disk.settle(c.store.dir)))
}

// Close removes the copy; files that are open stay readable where the system
// allows it. Closing again does nothing. The Close of the store does it too.
func (c *Checkpoint) Close() error {
	c.once.Do(func() {
		k := &c.store.copies
		k.mu.Lock()
		defer k.mu.Unlock()
		k.open = slices.DeleteFunc(k.open, func(o *Checkpoint) bool { return o == c })
		c.err = c.store.disk.FS.RemoveAll(c.home)
	})
	return c.err
}

// end closes every checkpoint, once the one being made is, and lets none begin.
func (k *checkpoints) end() {
	k.making.Lock()
	defer k.making.Unlock()
	k.mu.Lock()
	k.ended = true
	open := slices.Clone(k.open)
	k.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // what cannot be removed is removed by the next Open
	}
}

// removeCheckpoints removes what a process left that was killed. The directory is
// locked. What cannot be removed now is tried again by the next Open.
func removeCheckpoints(s *Store) {
	names, err := s.disk.FS.List(s.dir)
	for _, name := range names {
		if ownCheckpoint(s.disk.FS, s.disk.PathJoin(s.dir, name)) {
			err = firstError(err, s.disk.FS.RemoveAll(s.disk.PathJoin(s.dir, name)))
		}
	}
	if err != nil {
		pebbleLogger{s}.Errorf("a checkpoint that was left behind cannot be removed: %v", err)
	}
}

// ownCheckpoint says whether a path is one that a checkpoint of the store had: a
// directory with such a name, and nothing in it that newCheckpoint and trimLog do
// not make.
func ownCheckpoint(files vfs.FS, path string) bool {
	base := files.PathBase(path)
	if !strings.HasPrefix(base, checkpointPrefix) || !storeName(base) {
		return false
	}
	names, err := files.List(path) // of a file it fails
	return err == nil && !slices.ContainsFunc(names, func(name string) bool { return name != "db" && name != "log" })
}

// apartError is the error of something that happened to a copy: only damage says
// anything about the store.
func apartError(err error) error {
	switch {
	case err == nil || errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFailed):
		return err
	case isDamage(err):
		return fmt.Errorf("%w: %s", ErrCorrupt, damageText(err))
	}
	return fmt.Errorf("%w: %v", ErrCheckpoint, err)
}
