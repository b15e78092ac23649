package kv

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// archived is the content of a checkpoint, as an archive has it.
type archived struct {
	names    []string
	contents map[string][]byte
	bytes    int64
	entries  *entries // whose it is
}

// archive makes a store of some entries and keeps the files of its checkpoint.
func archive(t *testing.T) *archived {
	t.Helper()
	e := newEntries(t, vfs.NewMem(), 300)
	for range 20 {
		e.must(e.write())
	}
	e.must(e.store.Flush())
	e.must(e.write())
	c, err := e.store.Checkpoint(context.Background())
	e.must(err)
	a := &archived{contents: map[string][]byte{}, entries: e}
	for _, f := range c.Files() {
		r, err := c.Open(f.Name)
		e.must(err)
		b, err := io.ReadAll(r)
		e.must(errors.Join(err, r.Close()))
		a.names, a.contents[f.Name], a.bytes = append(a.names, f.Name), b, a.bytes+f.Bytes
	}
	e.must(c.Close())
	e.close()
	return a
}

// restoreTo goes all the way of a restore.
func (a *archived) restoreTo(disk vfs.FS, dir string) error {
	r, err := BeginRestore(dir, a.bytes, Options{FS: disk, CacheBytes: 1 << 20})
	if err != nil {
		return err
	}
	if err := a.fill(r); err != nil {
		return errors.Join(err, r.Abort())
	}
	return r.Publish()
}

func (a *archived) fill(r *Restoring) error {
	for _, name := range a.names {
		if err := r.Write(name, bytes.NewReader(a.contents[name])); err != nil {
			return err
		}
	}
	s, err := r.Open()
	if err != nil {
		return err
	}
	tx := s.NewTx()
	tx.Begin()
	tx.Put([]byte("restored"), []byte("1"))
	p, err := tx.Commit()
	if err == nil {
		err = p.Wait()
	}
	return errors.Join(err, tx.Close(), s.Close())
}

// opened says what opening dir does. A store that opens must have everything.
func (a *archived) opened(t *testing.T, disk vfs.FS, dir string) error {
	t.Helper()
	for _, readOnly := range []bool{true, false} {
		s, err := Open(dir, Options{FS: disk, CacheBytes: 1 << 20, ReadOnly: readOnly, MustExist: true})
		if err != nil {
			return err
		}
		snap := s.NewSnapshot()
		a.entries.holds(snap)
		if _, ok, err := snap.Get([]byte("restored")); err != nil || !ok {
			t.Errorf("what was to be done before it is published is there: %v, %v", ok, err)
		}
		must(t, errors.Join(snap.Close(), s.Close()))
	}
	return nil
}

func TestARestoredStoreOpensOnceItIsPublishedAndNotBefore(t *testing.T) {
	a := archive(t)
	for name, disk := range map[string]vfs.FS{"in memory": vfs.NewMem(), "on a disk": vfs.Default} {
		dir := "db"
		if disk == vfs.Default {
			dir = filepath.Join(t.TempDir(), "db")
		}
		r, err := BeginRestore(dir, a.bytes, Options{FS: disk, CacheBytes: 1 << 20})
		must(t, err)
		for _, when := range []string{"begun", "filled"} {
			if err := a.opened(t, disk, dir); !errors.Is(err, ErrUnfinished) {
				t.Errorf("%s, %s: opening says %v", name, when, err)
			}
			if _, err := Open(dir, Options{FS: disk}); !errors.Is(err, ErrUnfinished) {
				t.Errorf("%s, %s: opening or making a store says %v", name, when, err)
			}
			if _, err := BeginRestore(dir, a.bytes, Options{FS: disk}); !errors.Is(err, ErrLocked) {
				t.Errorf("%s, %s: a second restore says %v", name, when, err)
			}
			if when == "begun" {
				must(t, a.fill(r))
			}
		}
		must(t, r.Publish())
		must(t, a.opened(t, disk, dir))
		if err := Restorable(dir, Options{FS: disk}); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("%s: over the store: %v", name, err)
		}
		if _, err := BeginRestore(dir, a.bytes, Options{FS: disk}); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("%s: over the store: %v", name, err)
		}
		must(t, a.opened(t, disk, dir))
	}
}

func TestAnAbortedRestoreLeavesTheDirectoryAsItWas(t *testing.T) {
	a := archive(t)
	for _, there := range []bool{false, true} {
		mem := vfs.NewMem()
		if there {
			must(t, mem.MkdirAll("home/db", 0o755))
		} else {
			must(t, mem.MkdirAll("home", 0o755))
		}
		before := mem.String()
		r, err := BeginRestore("home/db", a.bytes, Options{FS: mem, CacheBytes: 1 << 20})
		must(t, err)
		must(t, a.fill(r))
		must(t, r.Abort())
		if after := mem.String(); after != before {
			t.Errorf("from\n%sit became\n%s", before, after)
		}
		must(t, a.restoreTo(mem, "home/db"))
		must(t, a.opened(t, mem, "home/db"))
	}
}

// Power is lost at every operation: what is there does not open, or is whole, and
// the same restore again succeeds.
func TestAfterAPowerLossDuringARestoreNothingOpensAndARepeatSucceeds(t *testing.T) {
	a := archive(t)
	for _, percent := range []int{0, 50, 100} {
		for _, there := range []bool{false, true} {
			mem := vfs.NewCrashableMem()
			rng := rand.New(rand.NewPCG(uint64(percent), 7))
			var mu sync.Mutex
			var clones []*vfs.MemFS
			watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
				mu.Lock()
				defer mu.Unlock()
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
				}
				return nil
			})
			if there {
				must(t, mem.MkdirAll("db", 0o755))
			}
			must(t, a.restoreTo(errorfs.Wrap(mem, watch), "db"))
			whole := 0
			for i, clone := range append(clones, mem.CrashClone(vfs.CrashCloneCfg{})) {
				err := a.opened(t, clone, "db")
				switch {
				case err == nil:
					whole++
					continue
				case !errors.Is(err, ErrUnfinished) && !errors.Is(err, ErrMissing):
					t.Errorf("power loss %d: opening says %v", i, err)
				}
				if whole > 0 && percent == 100 {
					t.Errorf("power loss %d: it opened before", i)
				}
				must(t, a.restoreTo(clone, "db"))
				must(t, a.opened(t, clone, "db"))
			}
			if len(clones) < 30 || whole == 0 {
				t.Errorf("%d power losses, %d with a whole store: the test tests nothing", len(clones), whole)
			}
		}
	}
}

// Each write is refused once, and then each one and all after it.
func TestARestoreThatCannotWriteLeavesNothingThatOpens(t *testing.T) {
	a := archive(t)
	for _, stays := range []bool{false, true} {
		failed, last := 0, false
		for n := int64(0); ; n++ {
			mem := vfs.NewCrashableMem()
			left := atomic.Int64{}
			left.Store(n)
			disk, toggle := breakable(mem, func(op errorfs.Op) bool {
				at := left.Add(-1)
				return at == -1 || stays && at < 0
			})
			toggle.On()
			err := a.restoreTo(disk, "db")
			toggle.Off()
			if err == nil && left.Load() >= 0 {
				break
			}
			if err != nil {
				failed++
				opens := a.opened(t, mem, "db")
				if opens == nil && !errors.Is(err, ErrUnconfirmed) {
					t.Errorf("write %d: after %v opening says %v", n, err, opens)
				}
				if opens == nil && stays && !last {
					last = true // all but the last sync is done, and it cannot be undone
					continue
				}
				if !errors.Is(opens, ErrUnfinished) && !errors.Is(opens, ErrMissing) {
					t.Errorf("write %d: after %v opening says %v", n, err, opens)
				}
				must(t, a.restoreTo(mem, "db"))
			}
			must(t, a.opened(t, mem, "db"))
			must(t, a.opened(t, mem.CrashClone(vfs.CrashCloneCfg{}), "db"))
		}
		if failed < 20 {
			t.Errorf("%d restores failed: the test tests nothing", failed)
		}
	}
}

func TestARestoreBeginsInAMissingOrEmptyDirectoryOnly(t *testing.T) {
	a := archive(t)
	with := func(names ...string) *vfs.MemFS {
		mem := vfs.NewMem()
		for _, name := range names {
			touch(t, mem, name)
		}
		return mem
	}
	for _, c := range []struct {
		name, dir string
		disk      *vfs.MemFS
		want      error
	}{
		{"missing", "home/db", with("home/other"), nil},
		{"missing, with a slash", "home/db/", with("home/other"), nil},
		{"empty", "home/db", with("home/db/LOCK"), nil},
		{"a file system's own", "db", with("db/lost+found/x"), nil},
		{"unfinished", "db", with("db/RESTORING", "db/000004.sst", "db/LOCK"), nil},
		{"with a file", "db", with("db/notes.txt"), ErrNotEmpty},
		{"with a hidden file", "db", with("db/.x"), ErrNotEmpty},
		{"in a directory that is missing", "away/db", with("home/db"), fs.ErrNotExist},
		{"unfinished, all that a store makes", "db", with("db/RESTORING", "db/000004.sst", "db/000005.log", "db/MANIFEST-000001", "db/OPTIONS-000003",
			"db/marker.manifest.000001.MANIFEST-000001", "db/logs.000001.5", "db/checkpoint-2/db/000004.sst", "db/temporary.000009.dbtmp"), nil},
		{"unfinished, with somebody's file", "db", with("db/RESTORING", "db/000004.sst", "db/notes.txt"), ErrForeign},
		{"unfinished, with somebody's directory", "db", with("db/RESTORING", "db/000004.sst", "db/sub/x"), ErrForeign},
		{"unfinished, with a backup", "db", with("db/RESTORING", "db/checkpoint-monday.klb"), ErrForeign},
		{"in an unfinished restore", "home/db", with("home/RESTORING"), ErrInside},
	} {
		before := c.disk.String()
		if err := Restorable(c.dir, Options{FS: c.disk}); !errors.Is(err, c.want) {
			t.Errorf("%s: may a restore begin? %v", c.name, err)
		}
		if after := c.disk.String(); after != before {
			t.Errorf("%s: asking changed\n%sto\n%s", c.name, before, after)
		}
		err := a.restoreTo(c.disk, c.dir)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			must(t, a.opened(t, c.disk, c.dir))
		} else if after := c.disk.String(); after != before {
			t.Errorf("%s: it was refused and changed\n%sto\n%s", c.name, before, after)
		}
	}
}

func TestARestoreWritesPlainNamesOnly(t *testing.T) {
	r, err := BeginRestore("db", 0, Options{FS: vfs.NewMem()})
	must(t, err)
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "/x", "LOCK", "RESTORING", ".hidden", "a\x00b"} {
		if err := r.Write(name, strings.NewReader("x")); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	must(t, r.Write("000001.sst", strings.NewReader("x")))
	must(t, r.Abort())
}

func TestARestoreIsNotBegunWithoutRoomForIt(t *testing.T) {
	for _, c := range []struct {
		room uint64
		fits bool
	}{{checkpointRoom + 999, false}, {checkpointRoom + 1000, true}, {checkpointRoom + 1001, true}} {
		for _, there := range []bool{false, true} {
			mem := vfs.NewMem()
			if there {
				must(t, mem.MkdirAll("db", 0o755))
			}
			before := mem.String()
			r, err := BeginRestore("db", 1000, Options{FS: tightDisk{mem, c.room}})
			if c.fits != (err == nil) || !c.fits && !errors.Is(err, ErrNoRoom) {
				t.Errorf("with %d bytes of room: %v", c.room, err)
			}
			if err == nil {
				must(t, r.Abort())
			}
			if after := mem.String(); after != before {
				t.Errorf("from\n%sit became\n%s", before, after)
			}
		}
	}
}
