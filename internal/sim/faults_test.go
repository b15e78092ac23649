package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/course"
	"github.com/keyload/keyload/internal/sim/disk"
	"github.com/keyload/keyload/internal/sim/trial"
)

// faultyKinds are the files whose writes fail; the names of a directory and its
// syncs are one of them. "" is any file, and then every write after it fails too:
// the disk is full.
var faultyKinds = []string{"log", "table", "manifest", "options", "marker", "list", "directory", ""}

// A write fails, at any moment of the course and in the opening of the store: the
// command that needed it does not succeed, nothing more is written, reads go on,
// and a restart on a disk that works, or after a power loss, finds everything that
// was answered and carries the rest out as if nothing had happened.
func TestAWriteThatFailsStopsTheStoreAndNothingAnsweredIsLost(t *testing.T) {
	seed := trial.Seed(t, 1)
	o, err := newOracle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	tried := map[string]int{}
	for _, kind := range faultyKinds {
		t.Run(kindName(kind), func(t *testing.T) {
			t.Parallel()
			total := writesOf(t, kind)
			draw := rand.New(rand.NewPCG(seed, uint64(len(kind))))
			step := max(1, total/trial.Count(3, total))
			var trials sync.WaitGroup
			room := make(chan struct{}, runtime.GOMAXPROCS(0))
			n := 0
			for nth := 1 + draw.IntN(step); nth <= total && !t.Failed(); nth += step {
				n++
				room <- struct{}{}
				trials.Go(func() {
					defer func() { <-room }()
					f := &faultTrial{ctx: t.Context(), oracle: o, mem: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(seed, uint64(nth)))}
					if err := f.run(kind, nth); err != nil {
						t.Errorf("write %d of %d to %s fails: %v", nth, total, kindName(kind), err)
					}
				})
			}
			trials.Wait()
			mu.Lock()
			tried[kindName(kind)] = n
			mu.Unlock()
			trial.Replay(t, "./internal/sim", "TestAWriteThatFailsStopsTheStoreAndNothingAnsweredIsLost", seed)
		})
	}
	t.Cleanup(func() { trial.Report(t, "disk faults", "failed writes by kind of file: %v", tried) })
}

func kindName(kind string) string {
	if kind == "" {
		return "a full disk"
	}
	return kind
}

// writesOf counts the writes of a course to files of a kind.
func writesOf(t *testing.T, kind string) int {
	t.Helper()
	fs := disk.Fail(vfs.NewMem(), kind, 0, false)
	r := course.Start(kv.Options{FS: fs})
	err := r.Open()
	if err == nil {
		err = r.Finish(t.Context())
	}
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return fs.Writes()
}

// faultTrial is one failing write.
type faultTrial struct {
	ctx    context.Context
	oracle *oracle
	mem    *vfs.MemFS
	rng    *rand.Rand
	at     int // step in which the write failed
}

func (f *faultTrial) run(kind string, nth int) error {
	fs := disk.Fail(f.mem, kind, nth, kind == "")
	r := course.Start(kv.Options{FS: fs})
	fs.OnFail = func() { f.at = r.State().Next }
	err := r.Open()
	if err == nil {
		err = r.Finish(f.ctx)
	}
	state := r.State()
	switch {
	case err != nil && fs.Failed() == 0:
		return errors.Join(err, r.Close())
	case err != nil:
		if err := told(err); err != nil {
			return err
		}
	}
	if r.Store() != nil && fs.Failed() > 0 { // it is open: the course was stopped by it, or the store is about to say so
		if err := f.stopped(r, fs, state, err != nil); err != nil {
			return err
		}
	}
	if err := closed(r.Close()); err != nil || fs.Failed() == 0 {
		return err
	}
	lost := f.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: f.rng.IntN(101), RNG: f.rng})
	if kind == "" {
		if err := f.full(state); err != nil {
			return err
		}
	}
	l := &losses{ctx: f.ctx, oracle: f.oracle}
	if err := l.recover(f.mem, state, f.rng); err != nil {
		return fmt.Errorf("in step %d; on a disk that works again: %w", state.Next, err)
	}
	if err := l.recover(lost, state, f.rng); err != nil {
		return fmt.Errorf("in step %d; after a power loss: %w", state.Next, err)
	}
	return nil
}

// told wants an error that a stranger can act on: which of the two codes it has, or
// that of the store below where a step asks that, and what the disk said.
func told(err error) error {
	switch code := fault.CodeOf(err); {
	case code != fault.UnknownWriteOutcome && code != fault.RecoveryRequired && !(code == "" && errors.Is(err, kv.ErrFailed)):
		return fmt.Errorf("the code is %s: %w", code, err)
	case !strings.Contains(err.Error(), disk.ErrNoSpace.Error()):
		return fmt.Errorf("it does not say what the disk said: %w", err)
	}
	return nil
}

// closed lets a store that has stopped say so when it is closed.
func closed(err error) error {
	if err == nil || errors.Is(err, kv.ErrFailed) && !errors.Is(err, kv.ErrCorrupt) {
		return nil
	}
	return fmt.Errorf("closing it: %w", err)
}

// stopped looks at a store after a write has failed, while the process lives.
func (f *faultTrial) stopped(r *course.Run, fs *disk.Faulty, state course.State, noticed bool) error {
	if !noticed && r.Store().Err() == nil {
		if f.oracle.steps[f.at].Name == "reopen" { // it needed nothing more of the store that it closed
			return nil
		}
		return fmt.Errorf("a write has failed in step %d, %s, and the course went on to its end", f.at, f.oracle.steps[f.at].Name)
	}
	view, err := r.View(f.ctx)
	if err != nil {
		return fmt.Errorf("reads do not go on: %w", err)
	}
	if err := f.oracle.judgeView(f.ctx, state.Next, view); err != nil {
		return err
	}
	if noticed {
		fs.Heal() // room was made, and still nothing is written before the restart
		if err := r.Finish(f.ctx); err == nil {
			return fmt.Errorf("step %d is carried out after a write has failed", state.Next)
		} else if err := told(err); err != nil {
			return err
		}
	}
	return nil
}

// full opens the store again on a disk that is still full: it refuses, says why,
// and takes nothing away.
func (f *faultTrial) full(state course.State) error {
	again := disk.Fail(f.mem, "", 1, true)
	for range 2 {
		r := course.Resume(kv.Options{FS: again}, state)
		err := r.Open()
		if err == nil {
			return errors.Join(errors.New("it opens on a full disk"), r.Close())
		}
		if err := told(err); err != nil {
			return err
		}
	}
	return nil
}
