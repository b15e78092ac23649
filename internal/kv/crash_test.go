package kv

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Power is lost at a random point of a random history: durable entries are
// there, every other one is whole or absent, and none is there without the ones
// before it, whichever of the unsynced blocks reached the disk.
func TestAPowerLossLeavesWholeEntriesAndEveryDurableOne(t *testing.T) {
	for _, percent := range []int{0, 30, 70, 100} {
		for seed := range uint64(8) {
			rng := rand.New(rand.NewPCG(seed, uint64(percent)))
			mem := vfs.NewCrashableMem()
			size := []int{20, 5_000, 40_000}[rng.IntN(3)] // rows within a block, over several, over a log's chunk
			e := newEntries(t, mem, size)
			var last *Pending
			for range 5 + rng.IntN(20) {
				p, err := e.put()
				e.must(err)
				if last = p; rng.IntN(3) > 0 {
					e.must(p.Wait())
					e.told, last = e.next, nil
				}
				if rng.IntN(8) == 0 {
					e.must(e.store.Flush())
				}
			}
			crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			told := e.told
			if last != nil {
				e.must(last.Wait())
			}
			e.close()
			e.told = told
			e.reopened(crashed)
			e.told = e.next // what was closed without a crash is all there
			e.reopened(mem)
			if t.Failed() {
				t.Fatalf("at %d percent, seed %d", percent, seed)
			}
		}
	}
}

// A store that was never waited for loses its tail and nothing else.
func TestASecondPowerLossDuringRecoveryLosesNothingMore(t *testing.T) {
	mem := vfs.NewCrashableMem()
	e := newEntries(t, mem, 1000)
	for range 20 {
		e.must(e.write())
	}
	p, err := e.put()
	e.must(err)
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 2))
		crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
		s, err := Open("db", Options{FS: crashed, CacheBytes: 1 << 20})
		e.must(err)
		again := crashed.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
		e.must(s.Close())
		e.reopened(again)
	}
	e.must(p.Wait())
	e.close()
}

// Without Wait an entry is visible and may be lost: that is why nobody is told.
func TestAnEntryNotWaitedForCanBeLost(t *testing.T) {
	mem := vfs.NewCrashableMem()
	fs := &heldSyncs{FS: mem}
	e := newEntries(t, fs, 100)
	e.must(e.write())
	release := fs.hold()
	p, err := e.put()
	e.must(err)
	snap := e.store.NewSnapshot()
	if n := e.holds(snap); n != 2 {
		t.Errorf("a snapshot shows %d entries, want both", n)
	}
	e.must(snap.Close())
	if n := e.reopened(mem.CrashClone(vfs.CrashCloneCfg{})); n != 1 {
		t.Errorf("%d entries survived, want the one that was synced", n)
	}
	release()
	e.must(p.Wait())
	e.told = 2
	e.reopened(mem.CrashClone(vfs.CrashCloneCfg{}))
	e.close()
}

// Whatever of the names in the directory reaches the disk when the power goes
// while a store opens: no marker is left that names a file which is not there.
func TestAPowerLossWhileAStoreOpensLeavesNoMarkerOfAFileThatIsNotThere(t *testing.T) {
	killed, e := damageable(t, false)
	for at := 1; ; at++ {
		fs := &countedSyncs{MemFS: killed.CrashClone(vfs.CrashCloneCfg{}), at: at}
		s, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20})
		e.must(err)
		e.must(s.Close())
		if fs.left == nil {
			if at < 10 {
				t.Errorf("opening and closing takes %d syncs: the test tests nothing", at)
			}
			return
		}
		for _, left := range fs.left {
			e.reopened(left)
		}
	}
}
