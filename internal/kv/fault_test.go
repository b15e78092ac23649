package kv

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

var errDisk = errors.New("no space left on device")

// breakable is a file system whose writes of one kind can be made to fail.
func breakable(fs vfs.FS, fails func(errorfs.Op) bool) (vfs.FS, *errorfs.Toggle) {
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && fails(op) {
			return errDisk
		}
		return nil
	})}
	return errorfs.Wrap(fs, toggle), toggle
}

func at(suffix string, kinds ...errorfs.OpKind) func(errorfs.Op) bool {
	return func(op errorfs.Op) bool {
		for _, k := range kinds {
			if k == op.Kind && (strings.HasSuffix(op.Path, suffix) || strings.Contains(op.Path, "/"+suffix)) {
				return true
			}
		}
		return false
	}
}

var diskFaults = map[string]func(errorfs.Op) bool{
	"the log cannot be written":      at(".log", errorfs.OpFileWrite),
	"the log cannot be synced":       at(".log", errorfs.OpFileSync, errorfs.OpFileSyncData),
	"a log cannot be made":           at(".log", errorfs.OpCreate, errorfs.OpReuseForWrite),
	"a table cannot be made":         at(".sst", errorfs.OpCreate),
	"a table cannot be written":      at(".sst", errorfs.OpFileWrite),
	"a table cannot be synced":       at(".sst", errorfs.OpFileSync, errorfs.OpFileSyncData),
	"the manifest cannot be written": at("MANIFEST-", errorfs.OpFileWrite),
	"the manifest cannot be synced":  at("MANIFEST-", errorfs.OpFileSync, errorfs.OpFileSyncData),
	"the directory cannot be synced": at("db", errorfs.OpFileSync),
	"nothing can be written":         func(errorfs.Op) bool { return true },
}

// Whatever write fails first: the store says so and takes nothing more, reads go
// on, the process lives, Close returns, and a restart finds all that was told.
func TestAFailedWriteStopsTheStoreAndNothingElse(t *testing.T) {
	for name, fails := range diskFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewCrashableMem()
			fs, toggle := breakable(mem, fails)
			e := newEntries(t, fs, 50)
			for range 10 {
				e.must(e.write())
			}
			e.must(e.store.Flush())
			for range 10 {
				e.must(e.write())
			}
			toggle.On()
			var err error
			for range 20 {
				if err = e.write(); err != nil {
					break
				}
				if err = e.store.Flush(); err != nil {
					break
				}
			}
			if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), errDisk.Error()) {
				t.Fatalf("the failure was answered with: %v", err)
			}
			e.stopped()
			e.readable()
			toggle.Off() // room was made, and still nothing is written before the restart
			e.stopped()
			e.close()
			e.reopened(mem.CrashClone(vfs.CrashCloneCfg{}))
			e.reopened(mem)
		})
	}
}

func (e *entries) stopped() {
	e.t.Helper()
	for name, err := range map[string]error{
		"Err": e.store.Err(), "a write": e.write(), "Flush": e.store.Flush(), "Compact": e.store.Compact([]byte("a"), []byte("z")),
	} {
		if !errors.Is(err, ErrFailed) || errors.Is(err, ErrCorrupt) {
			e.t.Errorf("%s answers: %v", name, err)
		}
	}
}

func (e *entries) readable() {
	e.t.Helper()
	snap, tx := e.store.NewSnapshot(), e.store.NewTx()
	tx.Begin()
	e.holds(snap)
	e.holds(tx)
	if v, ok, err := tx.Get(entryKey(3, 1)); !ok || err != nil || !strings.HasPrefix(string(v), "value of 3/1") {
		e.t.Errorf("a row reads as %q, %v, %v", v, ok, err)
	}
	if e.store.Metrics() == "" || e.store.DiskBytes() == 0 {
		e.t.Error("the store has no metrics")
	}
	e.must(errors.Join(snap.Close(), tx.Close()))
}

// Several shards write at the moment of the failure: each learns of it, and
// nobody is told that a lost write is safe.
func TestEveryShardLearnsOfAFailedWrite(t *testing.T) {
	const shards, before = 4, 25
	mem := vfs.NewCrashableMem()
	fs, toggle := breakable(mem, diskFaults["nothing can be written"])
	s, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	told := [shards]int{}
	var wg, half sync.WaitGroup
	half.Add(shards)
	for i := range shards {
		wg.Go(func() {
			tx := s.NewTx()
			defer tx.Close()
			for n := 0; ; n++ {
				if n == before {
					half.Done()
				}
				tx.Begin()
				tx.Put(fmt.Appendf(nil, "%d/%06d", i, n), make([]byte, 1000))
				p, err := tx.Commit()
				if err == nil {
					err = p.Wait()
				}
				if err != nil {
					if !errors.Is(err, ErrFailed) {
						t.Errorf("shard %d: %v", i, err)
					}
					return
				}
				told[i] = n + 1
			}
		})
	}
	half.Wait()
	toggle.On()
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openMem(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	tx := newTx(t, again)
	for i, n := range told {
		if n < before {
			t.Errorf("shard %d was told of %d writes only", i, n)
		}
		for k := range n {
			if text(t, tx, fmt.Sprintf("%d/%06d", i, k)) == "absent" {
				t.Errorf("write %d of shard %d is lost", k, i)
			}
		}
	}
}

func TestAStoreThatCannotBeMadeSaysWhy(t *testing.T) {
	for name, fails := range diskFaults {
		t.Run(name, func(t *testing.T) {
			fs, toggle := breakable(vfs.NewMem(), fails)
			toggle.On()
			s, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20})
			if err == nil {
				e := &entries{t: t, store: s, tx: s.NewTx()}
				for err == nil && e.next < 5 { // what making it did not need, writing may
					err = errors.Join(e.write(), s.Flush())
				}
				e.close()
			}
			if err == nil || !strings.Contains(err.Error(), errDisk.Error()) || errors.Is(err, ErrCorrupt) {
				t.Errorf("it failed with: %v", err)
			}
			toggle.Off()
			e := newEntries(t, fs, 10) // and nothing is in the way afterwards
			e.must(e.write())
			e.close()
		})
	}
}
