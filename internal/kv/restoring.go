package kv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrUnfinished says that a restore into the directory was begun and neither
// finished nor undone. What is there is no store; a restore may begin anew.
var ErrUnfinished = errors.New("a restore into the directory was begun and not finished")

// ErrUnmade is the ErrUnfinished of a new store: there never was anything in it.
var ErrUnmade = fmt.Errorf("%w: it is of a new store", ErrUnfinished)

// ErrNotEmpty says that a directory holds something, so that nothing can be
// restored into it.
var ErrNotEmpty = errors.New("the directory is not empty")

// ErrForeign says that beside what an unfinished restore left there is something
// that no restore makes.
var ErrForeign = errors.New("no restore made this")

// ErrInside says that a directory would lie in that of another store, which may
// remove it or take it for its own.
var ErrInside = errors.New("the directory is within that of a store")

// ErrUnconfirmed says that every step of a restore was done and the disk has not
// confirmed the last one. A directory that opens is the whole store; one that says
// ErrUnfinished can be restored into again.
var ErrUnconfirmed = errors.New("the restore was done, and its last step was not confirmed")

// Restoring is a directory in which a store comes to be out of files. Nobody can
// open it before Publish, whatever happens to this process. End it with Publish
// or Abort. Not safe for concurrent use.
type Restoring struct {
	dir  string
	opts Options
	fs   vfs.FS
	lock *pebble.Lock
	made bool // the directory was made for it
	// before is what the restore whose leftovers were found was of; "" where there
	// were none, or they do not say.
	before  string
	written map[string]bool
}

// Before is what an unfinished restore was of whose leftovers were removed, as its
// Options.Of said; "" if there was none.
func (r *Restoring) Before() string { return r.before }

// Restorable says whether a restore may begin in dir: it must be missing in a
// directory that is there, or empty, or hold what an unfinished restore left.
// Errors: ErrNotEmpty, ErrForeign, ErrInside, or what the file system said.
func Restorable(dir string, o Options) error {
	_, err := newRestoring(dir, o).look()
	return err
}

func newRestoring(dir string, o Options) *Restoring {
	r := &Restoring{dir: dir, opts: o, fs: onDisk(o), written: map[string]bool{}}
	r.dir = r.fs.PathJoin(dir) // without a separator at its end, behind which there is no parent
	return r
}

// look lists what an unfinished restore has left in the directory, and learns
// whether the directory was made by one.
func (r *Restoring) look() (left []string, err error) {
	if store, inside := StoreAround(r.parent(), r.opts); inside {
		return nil, fmt.Errorf("%w: %s is in %s", ErrInside, r.dir, store)
	}
	names, err := r.fs.List(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if leadsNowhere(r.fs, r.dir) {
			return nil, fmt.Errorf("%s: %w: it is a link to nothing", r.dir, syscall.ENOTDIR)
		}
		r.made = true
		_, err = r.fs.Stat(r.parent())
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	sign, err := readSign(r.fs, r.dir)
	if err != nil {
		return nil, err
	}
	if sign != nil && sign.of != ofNew && r.opts.Of == ofNew {
		return nil, fmt.Errorf("%w: %s", ErrUnfinished, r.dir)
	}
	for _, name := range names {
		switch {
		case name == lockName, name == "lost+found": // the second is what a new file system has
		case sign == nil:
			return nil, fmt.Errorf("%w: %s", ErrNotEmpty, r.dir)
		case name == unfinishedName:
		case !storeName(name):
			return nil, fmt.Errorf("%w: %s", ErrForeign, r.fs.PathJoin(r.dir, name))
		default:
			left = append(left, name)
		}
	}
	if sign == nil {
		return left, nil
	}
	if r.made = sign.made; sign.of != ofNew {
		r.before = sign.of
	}
	return left, nil
}

func (r *Restoring) parent() string { return parentOf(r.fs, r.dir) }

func parentOf(files vfs.FS, dir string) string {
	if parent := files.PathDir(files.PathJoin(dir)); parent != "" {
		return parent
	}
	return "." // of a name without any separator, on a file system in memory
}

// BeginRestore makes the directory if it is missing, locks it, and removes what
// an unfinished restore left. bytes is how many are to be written; without room
// for them nothing is begun. Errors: ErrNotEmpty, ErrForeign, ErrInside, ErrLocked,
// ErrNoRoom, or what the file system said; after an error everything is as it was.
func BeginRestore(dir string, bytes int64, o Options) (*Restoring, error) {
	return begin(dir, uint64(bytes)+checkpointRoom, o)
}

// BeginNew is BeginRestore for a store that New makes, and makes the directories
// above it too. What an unfinished restore left is not removed: ErrUnfinished.
func BeginNew(dir string, o Options) (*Restoring, error) {
	o.Of = ofNew
	above := newStore(parentOf(onDisk(o), dir), o)
	if store, inside := StoreAround(above.dir, o); inside {
		return nil, fmt.Errorf("%w: %s is in %s", ErrInside, dir, store)
	}
	if err := makeDir(above); err != nil {
		return nil, err
	}
	return begin(dir, 0, o)
}

func begin(dir string, room uint64, o Options) (*Restoring, error) {
	r := newRestoring(dir, o)
	if _, err := r.look(); err != nil {
		return nil, err
	}
	if use, err := r.fs.GetDiskUsage(r.parent()); err == nil && use.AvailBytes < room && r.made {
		return nil, noRoom(use.AvailBytes, room)
	}
	if err := r.fs.MkdirAll(r.dir, privateDir); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(r.dir, r.fs)
	if err != nil {
		return nil, openError(dir, err)
	}
	r.lock = lock
	made := r.made
	left, err := r.look()
	if err != nil { // somebody else has come first: what is there is not ours to remove
		return nil, firstError(err, lock.Close())
	}
	r.made = r.made || made
	if err := r.begin(left, room); err != nil {
		return nil, firstError(err, r.Abort())
	}
	return r, nil
}

func noRoom(have, want uint64) error {
	return fmt.Errorf("%w: %d bytes, and %d are wanted", ErrNoRoom, have, want)
}

// begin clears the directory and marks it as unfinished.
func (r *Restoring) begin(left []string, room uint64) error {
	if len(left) > 0 { // the mark may be one that is not durable yet
		if err := r.sync(r.dir); err != nil {
			return err
		}
	}
	for _, name := range left {
		if err := r.fs.RemoveAll(r.fs.PathJoin(r.dir, name)); err != nil {
			return err
		}
	}
	if use, err := r.fs.GetDiskUsage(r.dir); err == nil && use.AvailBytes < room {
		return noRoom(use.AvailBytes, room)
	}
	return firstError(r.mark(), r.sync(r.parent()))
}

// Write makes one file, durably. The name must be one that Checkpoint.Files has.
func (r *Restoring) Write(name string, content io.Reader) error {
	if name == unfinishedName || name == lockName || name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("no file of a store has the name %q", name)
	}
	r.written[name] = true
	return r.write(name, content)
}

func (r *Restoring) write(name string, content io.Reader) error {
	f, err := r.fs.Create(r.fs.PathJoin(r.dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(firstError(err, f.Sync()), f.Close())
}

func (r *Restoring) sync(dir string) error {
	d, err := r.fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Open opens the store that the files make. Close it before Publish or Abort.
func (r *Restoring) Open() (*Store, error) { return r.open(true) }

// New makes a store of no files. Close it before Publish or Abort.
func (r *Restoring) New() (*Store, error) { return r.open(false) }

func (r *Restoring) open(exists bool) (*Store, error) {
	o := r.opts
	o.MustExist, o.ReadOnly = exists, false
	s := newStore(r.dir, o)
	s.lock, s.lent = r.lock, true
	if err := s.open(verify); err != nil {
		return nil, err
	}
	return s, nil
}

// Publish makes the directory a store that opens, in one step. After an error
// nothing is left, unless it is ErrUnconfirmed; only where the disk refuses that too,
// what is left is no store that opens.
func (r *Restoring) Publish() error {
	if err := r.sync(r.dir); err != nil {
		return errors.Join(err, r.Abort())
	}
	err := r.fs.Remove(r.fs.PathJoin(r.dir, unfinishedName))
	if err == nil {
		if err = r.sync(r.dir); err == nil {
			return unconfirmed(r.lock.Close())
		}
	}
	// The lock is held, so nobody has opened it. It must not lose a file while it
	// could be opened.
	if marked := r.mark(); marked != nil {
		return unconfirmed(errors.Join(err, marked, r.lock.Close()))
	}
	return errors.Join(err, r.Abort())
}

func unconfirmed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
}

// mark makes the file that keeps the directory from being opened.
func (r *Restoring) mark() error {
	text := sign{r.made, r.opts.Of}.text()
	return firstError(r.write(unfinishedName, strings.NewReader(text)), r.sync(r.dir))
}

// Abort removes everything that was made. What cannot be removed stays a
// directory that does not open, and the next restore removes it.
func (r *Restoring) Abort() error {
	return errors.Join(r.undo(), r.lock.Close())
}

// undo removes what was made, in an order in which a power loss leaves no store that
// opens: that the files are gone is durable before the mark goes. The lock's file is
// removed while the lock is held, or it could be that of somebody who came meanwhile.
func (r *Restoring) undo() error {
	names, err := r.fs.List(r.dir)
	for _, name := range names {
		if storeName(name) || r.written[name] { // what else is there somebody put there meanwhile
			err = firstError(err, r.fs.RemoveAll(r.fs.PathJoin(r.dir, name)))
		}
	}
	if err == nil {
		err = r.sync(r.dir)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{unfinishedName, lockName} {
		err := r.fs.Remove(r.fs.PathJoin(r.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the mark may not have been made yet
			return err
		}
	}
	left, err := r.fs.List(r.dir)
	if err != nil || !r.made || len(left) > 0 {
		return firstError(err, r.sync(r.dir))
	}
	return firstError(r.fs.Remove(r.dir), r.sync(r.parent()))
}
