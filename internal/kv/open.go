package kv

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// proving examines a store that was found, before Pebble opens it.
type proving func(files vfs.FS, dir, manifest string, names []string) error

// open opens the database, after prove has examined what is there. What counts is
// what is there once the directory is locked: before, somebody else may be at it.
func (s *Store) open(prove proving) error {
	if err := mayOpen(s); err != nil {
		return err
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	f, err := examine(s, prove)
	if err != nil {
		return firstError(err, s.unlock())
	}
	return s.openFound(f)
}

// found is what is in the directory of a store.
type found struct {
	names []string
	db    *pebble.DBDesc // nil where Pebble can not tell; it says why when it opens
	there bool           // the directory is
}

func (f *found) exists() bool { return f.db != nil && f.db.Exists }

// absent says that there is no store, and that nothing keeps one from being made.
func (f *found) absent() bool { return !f.there || f.db != nil && !f.db.Exists }

func look(s *Store) (*found, error) {
	names, err := s.disk.FS.List(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &found{}, nil
	case err != nil:
		return nil, openError(s.dir, err)
	}
	f := &found{names: names, there: true}
	if db, err := pebble.Peek(s.dir, s.disk.FS); err == nil {
		f.db = db
	}
	return f, nil
}

// mayOpen refuses what needs no lock to be refused, before anything is made, and
// makes the directory of a new store.
func mayOpen(s *Store) error {
	if err := unfinished(s); err != nil {
		return err
	}
	f, err := look(s)
	switch {
	case err != nil || !f.absent():
		return err
	case verifyAbsent(s.disk.FS, s.dir, f.names) != nil:
		return nil // it is damaged, or is being made: the lock will tell
	case s.opts.MustExist || s.opts.ReadOnly:
		return fmt.Errorf("%w: %s", ErrMissing, s.dir)
	}
	if around, inside := StoreAround(parentOf(s.disk.FS, s.dir), s.opts); inside && !s.opts.Inside {
		return fmt.Errorf("%w: %s is in %s", ErrInside, s.dir, around)
	}
	return makeDir(s)
}

// makeDir makes the directory if it is missing, durably.
func makeDir(s *Store) error {
	below := s.disk.FS
	var grown []string // directories that get a new name
	for dir := below.PathJoin(s.dir); ; {
		if _, err := below.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		parent := below.PathDir(dir)
		if parent == dir || parent == "" {
			grown = append(grown, ".")
			break
		}
		dir, grown = parent, append(grown, parent)
	}
	if len(grown) == 0 {
		return nil
	}
	err := below.MkdirAll(s.dir, privateDir)
	for _, dir := range grown {
		if err == nil {
			err = s.disk.settle(dir)
		}
	}
	if err != nil {
		return openError(s.dir, err)
	}
	return nil
}

// examine is what counts: it looks once the directory is locked.
func examine(s *Store, prove proving) (*found, error) {
	if err := unfinished(s); err != nil {
		return nil, err
	}
	f, err := look(s)
	if err != nil {
		return nil, err
	}
	if f.absent() {
		if err := verifyAbsent(s.disk.FS, s.dir, f.names); err != nil {
			return nil, err
		}
		if s.opts.MustExist || s.opts.ReadOnly {
			return nil, fmt.Errorf("%w: %s", ErrMissing, s.dir)
		}
	}
	if f.exists() {
		if err := prove(s.disk.FS, s.dir, f.db.ManifestFilename, f.names); err != nil {
			return nil, openError(s.dir, err)
		}
		if !s.opts.ReadOnly {
			removeCheckpoints(s)
		}
	}
	return f, nil
}

// openFound has Pebble open what was found, or make a store. The directory is locked.
func (s *Store) openFound(f *found) (err error) {
	dir := s.dir
	s.disk.logs.load(dir, f.names)
	po := s.pebbleOptions()
	defer po.Cache.Unref()
	if err := verifyOptions(s.disk.FS, dir, f.db, po); err != nil {
		return firstError(openError(dir, err), s.unlock())
	}
	s.db, err = pebble.Open(dir, po)
	s.disk.opened.Store(true)
	failed := s.Err()
	if errors.Is(failed, ErrCorrupt) {
		failed = nil // background work came upon it; what lies elsewhere can be read
	}
	switch {
	case failed == nil && err == nil:
		s.disk.unnamed.forget() // the log is in use from here on
		return nil
	case failed == nil && f.exists() && missesTable(err): // one is gone, or the edit that no longer needs it
		err = damaged(f.db.ManifestFilename, "tables that it names are not as it says: %s", damageText(err))
	case failed == nil:
		err = openError(dir, err)
	default: // whatever Pebble says: it was told that the writes after this one went well
		err = fmt.Errorf("open %s: %w; nothing stored was changed or lost, and once the disk takes writes the store opens again", dir, failed)
	}
	if s.db == nil {
		return firstError(err, s.unlock())
	}
	return firstError(err, s.Close())
}

func openError(dir string, err error) error {
	switch {
	case errors.Is(err, ErrCorrupt):
		return err
	case isDamage(err):
		return fmt.Errorf("%w: %s: %s", ErrCorrupt, dir, damageText(err))
	case errors.Is(err, pebble.ErrDBNotPristine): // Pebble asks for it where a new store has none yet
		return fmt.Errorf("%w: %s: the file marker.format-version.* is gone", ErrCorrupt, dir)
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return fmt.Errorf("%w: %s", ErrMissing, dir)
	case isLockError(err):
		return fmt.Errorf("%w: %s", ErrLocked, dir)
	default:
		return fmt.Errorf("open %s: %w", dir, err)
	}
}

func (s *Store) takeLock() (err error) {
	if s.lent {
		return nil
	}
	if s.lock, err = pebble.LockDirectory(s.dir, s.disk.FS); err != nil {
		return openError(s.dir, err)
	}
	return nil
}

func (s *Store) unlock() error {
	s.disk.tidy() // while nobody else can open it
	if s.lent {
		return nil
	}
	return s.lock.Close()
}
