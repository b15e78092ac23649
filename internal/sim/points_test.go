package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/course"
	"github.com/keyload/keyload/internal/sim/disk"
	"github.com/keyload/keyload/internal/sim/trial"
)

// The power goes before or after a sync, whichever of the course; of what is not
// synced nothing, everything or parts of it reach the disk. Afterwards the store
// is sound; what was answered is there, and answers the same when it is repeated;
// what was not is there wholly or not at all, and repeating it gives one answer
// and one effect; and the rest of the course ends as if nothing had happened. The
// same when the process is killed at a stage of an entry. (Field cases 031, 032, 034,
// 084, 097 and 101, for every command and every entry.)
func TestAPowerLossAtAnySyncLosesNothingAnsweredAndRepeatsNothing(t *testing.T) {
	seed := trial.Seed(t, 1)
	ctx := t.Context()
	o, err := newOracle(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l := &losses{t: t, ctx: ctx, oracle: o, seed: seed, every: uint64(trial.Count(14, 1)), room: make(chan struct{}, runtime.GOMAXPROCS(0)), entries: map[string]uint64{}}
	l.mem = vfs.NewCrashableMem()
	l.run = course.Start(kv.Options{FS: disk.Watch(l.mem, l.reached), Stage: l.staged})
	err = l.run.Open()
	if err == nil {
		err = l.run.Finish(ctx)
	}
	if err == nil {
		err = l.run.Close()
	}
	l.trials.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if l.points < 200 {
		t.Errorf("the course has %d syncs only", l.points)
	}
	trial.Replay(t, "./internal/sim", t.Name(), seed)
	trial.Report(t, "power losses", "%d around %d syncs of one course, %d of them again while the store recovered", l.lost-l.kills, l.points, l.again)
	trial.Report(t, "kills in memory", "%d at the stages of the entries of one course, of which there are %d", l.kills, l.entries[kv.StageEncoded])
}

// losses is one course and the power losses that branch off it.
type losses struct {
	t      *testing.T
	ctx    context.Context
	oracle *oracle
	seed   uint64
	every  uint64 // of so many losses one is tried
	mem    *vfs.MemFS
	run    *course.Run
	room   chan struct{} // for trials at once
	trials sync.WaitGroup
	points int

	mu          sync.Mutex
	entries     map[string]uint64 // how often each stage was reached
	lost, again int
	kills       int
}

// reached lets the power go at a moment of the course, in three ways. The course
// goes on meanwhile.
func (l *losses) reached(at disk.Sync) {
	l.points = max(l.points, at.Number)
	for way, percent := range []int{0, 100, -1} {
		draw := uint64(at.Number)<<8 | uint64(way)<<1
		if at.After {
			draw |= 1
		}
		rng := rand.New(rand.NewPCG(l.seed, draw))
		if rng.Uint64()%l.every != 0 {
			continue
		}
		if percent < 0 {
			percent = 1 + rng.IntN(99)
		}
		when := "before"
		if at.After {
			when = "after"
		}
		l.branch(percent, rng, fmt.Sprintf("power lost %s sync %d, of %s, with %d percent of what was not synced", when, at.Number, at.File, percent))
	}
}

// staged ends the process at a stage of an entry: what it had written stays.
func (l *losses) staged(name string) {
	l.mu.Lock()
	l.entries[name]++
	n := l.entries[name]
	l.mu.Unlock()
	rng := rand.New(rand.NewPCG(l.seed+n<<20, uint64(len(name))))
	if rng.Uint64()%(3*l.every) != 0 {
		return
	}
	l.mu.Lock()
	l.kills++
	l.mu.Unlock()
	l.branch(100, rng, fmt.Sprintf("killed when %q was reached for the %d. time", name, n))
}

// branch recovers, beside the course, what an end of it at this moment leaves.
func (l *losses) branch(percent int, rng *rand.Rand, what string) {
	if l.t.Failed() {
		return
	}
	var state course.State
	var left *vfs.MemFS
	l.run.Frozen(func(now course.State) {
		state, left = now, l.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
	})
	l.room <- struct{}{}
	l.trials.Go(func() {
		defer func() { <-l.room }()
		if err := l.recover(left, state, rng); err != nil {
			l.t.Errorf("%s, in step %d: %v", what, state.Next, err)
		}
	})
}

// recover opens what a power loss left and compares it with the oracle.
func (l *losses) recover(left *vfs.MemFS, state course.State, rng *rand.Rand) (err error) {
	l.mu.Lock()
	l.lost++
	l.mu.Unlock()
	if rng.IntN(8) == 0 {
		if left, err = l.recoverTwice(left, state, rng); err != nil {
			return err
		}
	}
	r := course.Resume(kv.Options{FS: left}, state)
	if err := r.Open(); err != nil {
		return fmt.Errorf("the store does not open: %w", err)
	}
	defer func() {
		if cerr := r.Close(); err == nil {
			err = cerr
		}
	}()
	if err := sameDigests(r, state); err != nil {
		return err
	}
	if err := sound(r); err != nil {
		return err
	}
	view, err := r.View(l.ctx)
	if err != nil {
		return err
	}
	repeated, err := r.Repeat(l.ctx)
	if err != nil {
		return err
	}
	if err := l.oracle.judge(l.ctx, state.Next, view, repeated); err != nil {
		return err
	}
	return l.finish(r, state.Next)
}

// sameDigests says that a shard which stands where it stood between two steps has
// other rows now.
func sameDigests(r *course.Run, was course.State) error {
	for place, digest := range r.Digests() {
		if want, known := was.Digests[place]; known && digest != want {
			return fmt.Errorf("shard %d has the digest %s at position %d, and had %s", place.Shard, digest, place.Position, want)
		}
	}
	return nil
}

// finish carries out what was not answered, twice, and the rest of the course.
func (l *losses) finish(r *course.Run, next int) error {
	if next < len(l.oracle.steps) && l.oracle.steps[next].Operation != nil {
		if err := r.Until(l.ctx, next+1); err != nil {
			return err
		}
		again, err := r.Repeat(l.ctx)
		if err != nil {
			return err
		}
		if n := len(again); n > 0 && again[n-1].Answer.Step == next && again[n-1].Reply != again[n-1].Answer.Reply {
			return fmt.Errorf("what was not answered is answered with\n%s\nand then with\n%s", again[n-1].Answer.Reply, again[n-1].Reply)
		}
	}
	if err := r.Finish(l.ctx); err != nil {
		return err
	}
	if err := l.oracle.judgeEnd(r.State().Views); err != nil {
		return err
	}
	return sound(r)
}

// recoverTwice opens a store and lets the power go again while it recovers. It
// returns what that leaves.
func (l *losses) recoverTwice(left *vfs.MemFS, state course.State, rng *rand.Rand) (*vfs.MemFS, error) {
	at, percent := 1+rng.IntN(12), rng.IntN(101)
	again := left
	r := course.Resume(kv.Options{FS: disk.Watch(left, func(s disk.Sync) {
		if s.Number == at && !s.After {
			again = left.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			l.mu.Lock()
			l.again++
			l.mu.Unlock()
		}
	})}, state)
	if err := r.Open(); err != nil {
		return nil, fmt.Errorf("the store does not open: %w", err)
	}
	return again, r.Close()
}

// sound runs the check over an open store.
func sound(r *course.Run) error {
	report, err := check.Store(context.Background(), r.Store(), nil)
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		err = fmt.Errorf("check: %s %s: %s", f.Invariant, f.Where, f.Text)
	}
	return err
}
