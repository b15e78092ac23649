package kv

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// private is the operating system's file system on which everything that is made
// is its owner's alone, whatever the umask says: a store holds all data of all
// tenants. A directory that was found stays as it is.
type private struct{ vfs.FS }

const (
	privateDir  = 0o700
	privateFile = 0o600
)

// onDisk is the file system of options: the operating system's if they name none.
func onDisk(o Options) vfs.FS {
	if o.FS != nil {
		return o.FS
	}
	return private{vfs.Default}
}

// MkdirAll implements vfs.FS.
func (p private) MkdirAll(dir string, _ os.FileMode) error { return p.FS.MkdirAll(dir, privateDir) }

// Create implements vfs.FS. Like the one below it replaces a file rather than
// emptying it, because a hard link may lead to the same one.
func (p private) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	err := claim(name)
	for errors.Is(err, fs.ErrExist) {
		if err := p.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		err = claim(name)
	}
	if err != nil {
		return nil, err
	}
	return p.FS.OpenReadWrite(name, category)
}

// OpenReadWrite implements vfs.FS.
func (p private) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := claim(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return p.FS.OpenReadWrite(name, category, opts...)
}

// Lock implements vfs.FS. Whoever had the directory may have removed the file just
// before: then the lock is on a file without a name, which keeps nobody out.
func (p private) Lock(name string) (io.Closer, error) {
	if err := claim(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	before, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	lock, err := p.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	if after, err := os.Stat(name); err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(errLockHeld, lock.Close())
	}
	return lock, nil
}

// Unwrap implements vfs.FS.
func (p private) Unwrap() vfs.FS { return p.FS }

// claim makes a file that is not there. One that is there is not even opened: to
// close it again would loosen a lock that this process holds on it.
func claim(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return err
	}
	return f.Close()
}

// leadsNowhere says whether a name that is not there is a link to nothing, in whose
// place nothing can be made.
func leadsNowhere(files vfs.FS, name string) bool {
	if _, ok := files.(private); !ok {
		return false
	}
	_, err := os.Lstat(name)
	return err == nil
}
