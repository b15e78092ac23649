package kv

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// filling is a disk that takes some more writes and refuses those after them.
type filling struct {
	vfs.FS
	left    atomic.Int64
	refused atomic.Int64
	spins   atomic.Bool
}

// manyRefusals is more than opening a store can meet unless it tries again and
// again.
const manyRefusals = 1000

// fill gives a disk room for some writes; kinds are those that need room.
func fill(below vfs.FS, room int, needsRoom func(errorfs.OpKind) bool) *filling {
	f := &filling{}
	f.left.Store(int64(room))
	f.FS = errorfs.Wrap(below, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !needsRoom(op.Kind) || f.left.Add(-1) >= 0 || f.spins.Load() {
			return nil
		}
		if f.refused.Add(1) == manyRefusals {
			f.spins.Store(true) // and there is room again, so that the test ends
		}
		return errDisk
	}))
	return f
}

var needsRoom = map[string]func(errorfs.OpKind) bool{
	"without room for bytes": func(k errorfs.OpKind) bool {
		return k == errorfs.OpFileWrite || k == errorfs.OpFileSync || k == errorfs.OpFileSyncData
	},
	"without room for files": func(k errorfs.OpKind) bool {
		return k == errorfs.OpFileWrite || k == errorfs.OpCreate || k == errorfs.OpReuseForWrite
	},
	"that refuses everything": func(k errorfs.OpKind) bool {
		return k.ReadOrWrite() == errorfs.OpIsWrite && k != errorfs.OpLock // a file that is there already
	},
}

// killedStores are what a process leaves that is killed.
var killedStores = map[string]func(*testing.T) (*vfs.MemFS, *entries){
	"with a log and tables": func(t *testing.T) (*vfs.MemFS, *entries) { return damageable(t, false) },
	"with a log of several memtables": func(t *testing.T) (*vfs.MemFS, *entries) {
		mem := vfs.NewCrashableMem()
		e := newEntries(t, mem, 40_000)
		for range 5 {
			e.must(e.write())
		}
		killed := mem.CrashClone(vfs.CrashCloneCfg{})
		e.close()
		return killed, e
	},
	"with nothing but an empty log": func(t *testing.T) (*vfs.MemFS, *entries) {
		mem := vfs.NewCrashableMem()
		e := newEntries(t, mem, 100)
		e.must(e.write())
		e.close()
		return mem, e
	},
}

// Whichever write of those that opening needs is the first to be refused: Open
// says so at once and leaves nothing running, each time, and with room the store
// is there with every row.
func TestAStoreDoesNotOpenOnADiskThatRefusesWritesAndLosesNothing(t *testing.T) {
	for kind, needs := range needsRoom {
		for what, kill := range killedStores {
			t.Run(kind+"/"+what, func(t *testing.T) {
				killed, e := kill(t)
				room := 0
				for ; ; room++ {
					mem := killed.CrashClone(vfs.CrashCloneCfg{})
					first := opens(t, fill(mem, room, needs))
					if first || opens(t, fill(mem, room, needs)) { // the next attempt has as much room again
						break
					}
					e.reopened(mem.CrashClone(vfs.CrashCloneCfg{})) // power is lost too
					e.reopened(mem)
					if t.Failed() {
						t.Fatalf("with room for %d writes", room)
					}
				}
				if room < 3 {
					t.Errorf("it needed %d writes: the test tests nothing", room)
				}
			})
		}
	}
}

// A supervisor starts a server over and over: what there is of room must be left
// for the start that has enough.
func TestStartingAgainOnAFullDiskTakesNoMoreRoom(t *testing.T) {
	const starts = 5
	for what, kill := range killedStores {
		t.Run(what, func(t *testing.T) {
			killed, _ := kill(t)
			for room := 0; ; room++ {
				mem := killed.CrashClone(vfs.CrashCloneCfg{})
				for range starts {
					if opens(t, fill(mem, room, needsRoom["without room for bytes"])) {
						return
					}
				}
				grown := map[string]int{}
				for _, name := range files(t, mem) {
					grown[kindOf(name)]++
				}
				for _, name := range files(t, killed) {
					grown[kindOf(name)]--
				}
				for _, kind := range []string{"sst", "log", "MANIFEST"} { // one of each is made and then named
					if grown[kind] > 1 {
						t.Fatalf("%d starts with room for %d writes left %d files more: %s", starts, room, grown[kind], kind)
					}
				}
			}
		})
	}
}

// opens says whether a store opens. When it does not, nothing of it may run on.
func opens(t *testing.T, disk *filling) (opened bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { // which ends when every goroutine has
		s, err := Open("db", Options{FS: disk, CacheBytes: 1 << 20})
		if opened = err == nil; opened {
			if err := s.Close(); err != nil && !errors.Is(err, ErrFailed) {
				t.Errorf("it closed with: %v", err)
			}
			return
		}
		if !strings.Contains(err.Error(), errDisk.Error()) || errors.Is(err, ErrCorrupt) {
			t.Errorf("it did not open, for: %v", err)
		}
	})
	if disk.spins.Load() {
		t.Errorf("it tried %d times to write", disk.refused.Load())
	}
	return opened
}

func TestAStoreThatDoesNotOpenOnAFullDiskSaysThatNothingIsLost(t *testing.T) {
	killed, e := damageable(t, false)
	_, err := Open("db", Options{FS: fill(killed, 0, needsRoom["without room for bytes"]), CacheBytes: 1 << 20})
	if !errors.Is(err, ErrFailed) || !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "nothing stored was changed or lost") {
		t.Errorf("it did not open, for: %v", err)
	}
	e.reopened(killed)
}
