package kv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrUnfinished says that a restore into the directory was begun and neither
// finished nor undone. What is there is no store; a restore may begin anew.
var ErrUnfinished = errors.New("a restore into the directory was begun and not finished")

// ErrNotEmpty says that a directory holds something, so that nothing can be
// restored into it.
var ErrNotEmpty = errors.New("the directory is not empty")

// ErrUnconfirmed says that every step of a restore was done and the disk has not
// confirmed the last one. A directory that opens is the whole store; one that says
// ErrUnfinished can be restored into again.
var ErrUnconfirmed = errors.New("the restore was done, and its last step was not confirmed")

const (
	// unfinishedName is the file that keeps a directory from being opened: it is
	// the first one that a restore makes and the last one it removes, which is the
	// one step that makes the store.
	unfinishedName = "RESTORING"
	lockName       = "LOCK"
)

// Restoring is a directory in which a store comes to be out of files. Nobody can
// open it before Publish, whatever happens to this process. End it with Publish
// or Abort. Not safe for concurrent use.
type Restoring struct {
	dir  string
	opts Options
	fs   vfs.FS
	lock *pebble.Lock
	made bool // the directory was made for it
}

// Restorable says whether a restore may begin in dir: it must be missing in a
// directory that is there, or empty, or hold what an unfinished restore left.
// Errors: ErrNotEmpty, or what the file system said.
func Restorable(dir string, o Options) error {
	_, err := newRestoring(dir, o).look()
	return err
}

func newRestoring(dir string, o Options) *Restoring {
	r := &Restoring{dir: dir, opts: o, fs: onDisk(o)}
	r.dir = r.fs.PathJoin(dir) // without a separator at its end, behind which there is no parent
	return r
}

// look lists what an unfinished restore has left in the directory, and learns
// whether the directory was made by one.
func (r *Restoring) look() (left []string, err error) {
	names, err := r.fs.List(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		r.made = true
		_, err = r.fs.Stat(r.parent())
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	unfinished := false
	for _, name := range names {
		switch name {
		case lockName, "lost+found": // the second is what a new file system has
		case unfinishedName:
			unfinished = true
		default:
			left = append(left, name)
		}
	}
	if !unfinished && len(left) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrNotEmpty, r.dir)
	}
	if unfinished {
		text, err := r.read(unfinishedName)
		if err != nil {
			return nil, err
		}
		r.made = text == madeText
	}
	return left, nil
}

func (r *Restoring) parent() string {
	if parent := r.fs.PathDir(r.dir); parent != "" {
		return parent
	}
	return "." // of a name without any separator, on a file system in memory
}

// The content of the file unfinishedName.
const (
	madeText  = "made for a restore\n"
	foundText = "found empty\n"
)

func (r *Restoring) read(name string) (string, error) {
	f, err := r.fs.Open(r.fs.PathJoin(r.dir, name))
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, 64))
	return string(b), errors.Join(err, f.Close())
}

// BeginRestore makes the directory if it is missing, locks it, and removes what
// an unfinished restore left. bytes is how many are to be written; without room
// for them nothing is begun. Errors: ErrNotEmpty, ErrLocked, ErrNoRoom, or what
// the file system said; after an error everything is as it was.
func BeginRestore(dir string, bytes int64, o Options) (*Restoring, error) {
	r := newRestoring(dir, o)
	if _, err := r.look(); err != nil {
		return nil, err
	}
	if use, err := r.fs.GetDiskUsage(r.parent()); err == nil && use.AvailBytes < uint64(bytes)+checkpointRoom && r.made {
		return nil, noRoom(use.AvailBytes, bytes)
	}
	if err := r.fs.MkdirAll(r.dir, 0o755); err != nil {
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
	if err := r.begin(left, bytes); err != nil {
		return nil, firstError(err, r.Abort())
	}
	return r, nil
}

func noRoom(have uint64, bytes int64) error {
	return fmt.Errorf("%w: %d bytes, and %d are wanted", ErrNoRoom, have, uint64(bytes)+checkpointRoom)
}

// begin clears the directory and marks it as unfinished.
func (r *Restoring) begin(left []string, bytes int64) error {
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
	if use, err := r.fs.GetDiskUsage(r.dir); err == nil && use.AvailBytes < uint64(bytes)+checkpointRoom {
		return noRoom(use.AvailBytes, bytes)
	}
	return firstError(r.mark(), r.sync(r.parent()))
}

// Write makes one file, durably. The name must be one that Checkpoint.Files has.
func (r *Restoring) Write(name string, content io.Reader) error {
	if name == unfinishedName || name == lockName || name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("no file of a store has the name %q", name)
	}
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
func (r *Restoring) Open() (*Store, error) {
	o := r.opts
	o.MustExist, o.ReadOnly = true, false
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
	text := foundText
	if r.made {
		text = madeText
	}
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
		if name != unfinishedName && name != lockName && name != "lost+found" {
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
	if !r.made {
		return r.sync(r.dir)
	}
	return firstError(r.fs.Remove(r.dir), r.sync(r.parent()))
}

// unfinished refuses a directory into which a restore was begun.
func unfinished(s *Store) error {
	if s.lent {
		return nil
	}
	if _, err := s.disk.FS.Stat(s.disk.PathJoin(s.dir, unfinishedName)); err == nil {
		return fmt.Errorf("%w: %s", ErrUnfinished, s.dir)
	}
	return nil // whatever keeps it from being read, Pebble finds too
}
