package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// The first write that fails is each one of those that a checkpoint needs: the
// store goes on and its proofs hold, nothing is left, and the next one succeeds.
func TestAWriteErrorInACheckpointIsNothingToTheStore(t *testing.T) {
	refused := 0
	for n := int64(0); ; n++ {
		mem := vfs.NewCrashableMem()
		left := atomic.Int64{}
		left.Store(n)
		disk, toggle := breakable(mem, func(op errorfs.Op) bool {
			return below(op) && op.Kind != errorfs.OpRemove && op.Kind != errorfs.OpRemoveAll && left.Add(-1) < 0
		})
		e := newEntries(t, disk, 300)
		for range 10 {
			e.must(e.write())
		}
		toggle.On()
		c, err := e.store.Checkpoint(context.Background())
		toggle.Off()
		if err == nil {
			e.must(c.Close())
			e.close()
			break
		}
		refused++
		if !errors.Is(err, ErrCheckpoint) || errors.Is(err, ErrFailed) || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), errDisk.Error()) {
			t.Errorf("write %d: %v", n, err)
		}
		e.must(e.store.Err())
		for range 3 {
			e.must(e.write())
		}
		e.must(e.store.Flush())
		e.must(e.write())
		if found := leftovers(t, mem, "db"); len(found) > 0 {
			t.Errorf("write %d: %v are left", n, found)
		}
		c = e.checkpoint()
		if got := e.inside(c); got != e.next {
			t.Errorf("write %d: the next checkpoint shows %d entries, want %d", n, got, e.next)
		}
		e.must(c.Close())
		crashed := mem.CrashClone(vfs.CrashCloneCfg{})
		e.close()
		e.reopened(crashed)
		e.reopened(mem)
	}
	if refused < 20 {
		t.Errorf("only %d writes were refused: the test tests nothing", refused)
	}
}

// A disk that refuses everything from some write of the checkpoint on, the
// store's own files excepted, must not keep the checkpoint trying for ever.
func TestACheckpointOnADiskThatStaysFullEnds(t *testing.T) {
	for _, room := range []int64{0, 3, 10, 20, 30, 40} {
		mem := vfs.NewMem()
		left := atomic.Int64{}
		left.Store(room)
		disk, toggle := breakable(mem, func(op errorfs.Op) bool {
			return below(op) && needsRoom["without room for bytes"](op.Kind) && left.Add(-1) < 0
		})
		e := newEntries(t, disk, 300)
		e.must(e.write())
		toggle.On()
		c, err := e.store.Checkpoint(context.Background())
		if err == nil {
			e.must(c.Close())
		} else if !errors.Is(err, ErrCheckpoint) {
			t.Errorf("with room for %d writes: %v", room, err)
		}
		e.must(e.write())
		e.close()
		if found := leftovers(t, mem, "db"); len(found) > 0 {
			t.Errorf("with room for %d writes: %v are left", room, found)
		}
	}
}

func TestWhatAKilledProcessLeftOfACheckpointIsRemovedByTheNextOpen(t *testing.T) {
	mem := vfs.NewMem()
	e := newEntries(t, mem, 100)
	e.must(e.write())
	e.close()
	for _, name := range []string{"checkpoint-1/db/000001.sst", "checkpoint-7/log", "checkpoint-12/db/deep/er/x", "checkpoint-3/"} {
		touch(t, mem, "db/"+name)
	}
	s, err := Open("db", Options{FS: mem, ReadOnly: true})
	e.must(errors.Join(err, s.Close()))
	if n := len(leftovers(t, mem, "db")); n != 4 {
		t.Errorf("opening for reading left %d of 4", n)
	}
	e.reopened(mem)
	if found := leftovers(t, mem, "db"); len(found) > 0 {
		t.Errorf("%v are left", found)
	}
}

// touch makes a file and its directory; a directory alone if the path ends with /.
func touch(t *testing.T, files vfs.FS, path string) {
	t.Helper()
	if dir, ok := strings.CutSuffix(path, "/"); ok {
		must(t, files.MkdirAll(dir, 0o755))
		return
	}
	must(t, files.MkdirAll(files.PathDir(path), 0o755))
	f, err := files.Create(path, vfs.WriteCategoryUnspecified)
	must(t, errors.Join(err, f.Close()))
}

// Somebody's own files may have names that begin like those of checkpoints.
func TestWhatNoCheckpointMadeIsLeftWhereItIs(t *testing.T) {
	mem := vfs.NewMem()
	e := newEntries(t, mem, 100)
	e.must(e.write())
	e.close()
	own := []string{"checkpoint-monday.klb", "checkpoint-5", "checkpoint-x/db/y", "checkpoint-1/db/x", "checkpoint-1/notes.txt", "checkpoint-/db/x", "checkpoint-1.old/log"}
	for _, name := range own {
		touch(t, mem, "db/"+name)
	}
	e.reopened(mem)
	for _, name := range own {
		if _, err := mem.Stat("db/" + name); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}

// What cannot be removed neither keeps the store closed nor is in the way.
func TestACheckpointThatCannotBeRemovedIsInNobodysWay(t *testing.T) {
	mem := vfs.NewMem()
	disk, toggle := breakable(mem, func(op errorfs.Op) bool { return op.Kind == errorfs.OpRemoveAll })
	e := newEntries(t, disk, 100)
	e.must(e.write())
	c := e.checkpoint()
	toggle.On()
	if err := c.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close says %v", err)
	}
	e.close()
	e = newEntries(t, disk, 100)
	e.next, e.told = 1, 1
	c = e.checkpoint()
	if n := e.inside(c); n != 1 {
		t.Errorf("the checkpoint shows %d entries, want 1", n)
	}
	e.close()
}

// Power is lost at each operation of a checkpoint: the store is whole, and the
// next Open removes what there was of the copy.
func TestAPowerLossDuringACheckpointHarmsNothing(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		mem := vfs.NewCrashableMem()
		rng := rand.New(rand.NewPCG(uint64(percent), 1))
		var clones []*vfs.MemFS
		var mu sync.Mutex
		watch := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if below(op) && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
			}
			return nil
		})}
		e := newEntries(t, errorfs.Wrap(mem, watch), 300)
		for range 5 {
			e.must(e.write())
		}
		watch.On()
		c := e.checkpoint()
		e.must(c.Close())
		watch.Off()
		e.close()
		if len(clones) < 20 {
			t.Errorf("only %d power losses: the test tests nothing", len(clones))
		}
		for _, clone := range clones {
			e.reopened(clone)
			if found := leftovers(t, clone, "db"); len(found) > 0 {
				t.Errorf("%v are left", found)
			}
		}
	}
}

// Pebble takes what it cannot read at the end of a log for the end of it: a copy
// would be short without a word.
func TestACheckpointOfDamagedFilesIsRefused(t *testing.T) {
	for _, kind := range []string{"log", "MANIFEST"} {
		mem := vfs.NewMem()
		e := newEntries(t, mem, 3000)
		for range 15 {
			e.must(e.write())
		}
		name := ""
		for _, n := range files(t, mem) {
			if kindOf(n) == kind {
				name = n // the newest comes last
			}
		}
		log, edits := e.store.disk.logAt.Load(), e.store.disk.editsAt.Load()
		at := int(log.bytes) / 2
		if kind == "MANIFEST" {
			at = int(edits.bytes) / 2
		}
		flip(t, mem, name, at)
		c, err := newCheckpoint(e.store)
		e.must(err)
		if err := c.copy(); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), kind) {
			t.Errorf("a damaged %s: %v", kind, err)
		}
		e.must(c.Close())
		e.must(e.store.Err())
		flip(t, mem, name, at) // it is whole again
		c = e.checkpoint()
		if n := e.inside(c); n != e.next {
			t.Errorf("the checkpoint shows %d entries, want %d", n, e.next)
		}
		e.must(c.Close())
		e.close()
	}
}

// tightDisk says how much room it has.
type tightDisk struct {
	vfs.FS
	room uint64
}

func (d tightDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.room}, nil
}

func TestACheckpointIsNotBegunOnADiskThatIsNearlyFull(t *testing.T) {
	for _, c := range []struct {
		room uint64
		fits bool
	}{{checkpointRoom - 1, false}, {checkpointRoom, true}, {checkpointRoom + 1, true}} {
		e := newEntries(t, tightDisk{vfs.NewMem(), c.room}, 100)
		e.must(e.write())
		got, err := e.store.Checkpoint(context.Background())
		if c.fits != (err == nil) || !c.fits && !errors.Is(err, ErrNoRoom) {
			t.Errorf("with %d bytes of room: %v", c.room, err)
		}
		if err == nil {
			e.must(got.Close())
		}
		e.close()
	}
}

func TestACheckpointEndsWithItsContextAndWithItsStore(t *testing.T) {
	mem := vfs.NewMem()
	e := newEntries(t, mem, 100)
	e.must(e.write())
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fmt.Errorf("enough"))
	if _, err := e.store.Checkpoint(ctx); err == nil || err.Error() != "enough" {
		t.Errorf("after its context it says %v", err)
	}
	c := e.checkpoint()
	e.close()
	if found := leftovers(t, mem, "db"); len(found) > 0 {
		t.Errorf("the store is closed and %v are left", found)
	}
	e.must(c.Close())
	if _, err := e.store.Checkpoint(context.Background()); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("after Close it says %v", err)
	}
	s, err := Open("db", Options{FS: mem, ReadOnly: true})
	e.must(err)
	if _, err := s.Checkpoint(context.Background()); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("of a store that is open for reading only: %v", err)
	}
	e.must(s.Close())
}

func TestAFailedStoreMakesNoCheckpoint(t *testing.T) {
	disk, toggle := breakable(vfs.NewMem(), diskFaults["the log cannot be written"])
	e := newEntries(t, disk, 100)
	e.must(e.write())
	toggle.On()
	_ = e.write() // it fails, and the store with it
	if _, err := e.store.Checkpoint(context.Background()); !errors.Is(err, ErrFailed) {
		t.Errorf("it says %v", err)
	}
	e.close()
}
