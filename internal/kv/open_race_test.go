package kv

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// stalled runs a function once, right after a file was looked for or locked: as if
// the process had been off the processor that long.
type stalled struct {
	vfs.FS
	looked string // name of the file
	then   func()
}

func (s *stalled) run(name string) {
	if then := s.then; then != nil && strings.HasSuffix(name, s.looked) {
		s.then = nil
		then()
	}
}

func (s *stalled) Stat(name string) (vfs.FileInfo, error) {
	info, err := s.FS.Stat(name)
	s.run(name)
	return info, err
}

func (s *stalled) Lock(name string) (io.Closer, error) {
	s.run(name)
	return s.FS.Lock(name)
}

// killedRestore leaves what a restore leaves that was killed before its last step.
func (a *archived) killedRestore(t *testing.T, dir string) {
	t.Helper()
	r, err := BeginRestore(dir, a.bytes, Options{})
	must(t, err)
	for _, name := range a.names {
		must(t, r.Write(name, bytes.NewReader(a.contents[name])))
	}
	must(t, r.lock.Close()) // as the system does when the process is killed
}

// A restore that begins while a process is about to open the directory, and is
// killed: whatever that process has seen before it had the lock counts for nothing.
func TestARestoreThatBeganWhileTheDirectoryWasBeingOpenedIsNotOpened(t *testing.T) {
	a := archive(t)
	for _, looked := range []string{unfinishedName, lockName} {
		for _, there := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), "db")
			if there {
				must(t, os.Mkdir(dir, 0o700))
			}
			disk := &stalled{FS: private{vfs.Default}, looked: looked}
			disk.then = func() { a.killedRestore(t, dir) }
			s, err := Open(dir, Options{FS: disk, CacheBytes: 1 << 20})
			if err == nil {
				must(t, s.Close())
			}
			if !errors.Is(err, ErrUnfinished) || disk.then != nil {
				t.Errorf("after a look at %s, with the directory there %v: opening says %v", looked, there, err)
			}
			must(t, a.restoreTo(private{vfs.Default}, dir))
			must(t, a.opened(t, private{vfs.Default}, dir))
		}
	}
}

// The same with a store that comes to be: it is examined like any other.
func TestADamagedStoreThatCameWhileTheDirectoryWasBeingOpenedIsNotOpened(t *testing.T) {
	mem, e := damageable(t, false)
	damaged := mem.CrashClone(vfs.CrashCloneCfg{})
	for _, name := range files(t, damaged) {
		if strings.HasPrefix(name, "marker.") {
			e.must(damaged.Remove("db/" + name))
		}
	}
	for _, looked := range []string{unfinishedName, lockName} {
		to := vfs.NewMem()
		disk := &stalled{FS: to, looked: looked}
		disk.then = func() {
			_, err := vfs.Clone(damaged, to, "db", "db")
			must(t, err)
		}
		if _, err := Open("db", Options{FS: disk}); !errors.Is(err, ErrCorrupt) || disk.then != nil {
			t.Errorf("after a look at %s: opening says %v", looked, err)
		}
	}
}

// removing is a file system on which the lock's file is removed, and made anew by
// somebody else, between the moment it is opened and the moment it is locked.
type removing struct {
	vfs.FS
	t *testing.T
}

func (r removing) Lock(name string) (io.Closer, error) {
	lock, err := r.FS.Lock(name)
	must(r.t, errors.Join(os.Remove(name), os.WriteFile(name, nil, 0o600)))
	return lock, err
}

// A restore that is given up removes the file of the lock that it had.
func TestALockOnAFileThatWasRemovedIsNone(t *testing.T) {
	name := filepath.Join(t.TempDir(), lockName)
	if _, err := (private{removing{vfs.Default, t}}).Lock(name); err == nil || !isLockError(err) {
		t.Errorf("it says %v", err)
	}
	lock, err := private{vfs.Default}.Lock(name)
	must(t, err)
	must(t, lock.Close())
}
