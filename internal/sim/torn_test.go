package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/course"
	"github.com/keyload/keyload/internal/sim/disk"
	"github.com/keyload/keyload/internal/sim/trial"
)

// torn is a store whose last entry was written and not synced.
type torn struct {
	log         string
	synced, end int // of the log: what is durable, and what is written
	left        *vfs.MemFS
	state       course.State
}

// tear ends a course at the sync of the entry of one of its steps.
func tear(t *testing.T, step int) (out *torn) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	var fs *disk.Watched
	var r *course.Run
	synced := 0
	fs = disk.Watch(mem, func(s disk.Sync) {
		switch log, end := fs.Newest(); {
		case s.File != log:
		case s.After:
			synced = end
		case out == nil && end > synced:
			r.Frozen(func(now course.State) {
				if now.Next == step {
					out = &torn{log, synced, end, disk.Copy(mem), now}
				}
			})
		}
	})
	r = course.Start(kv.Options{FS: fs})
	err := r.Open()
	if err == nil {
		err = r.Until(t.Context(), step+1)
	}
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	if err != nil || out == nil {
		t.Fatalf("the log was not torn: %v", err)
	}
	return out
}

// A power loss tears the last entry at any byte, or leaves anything behind its
// beginning: what was answered is there, the entry wholly or not at all, and it is
// never taken for damage. A group's checkpoint above all does not go back.
func TestCase029_ATornTailTakesNothingThatWasAnswered(t *testing.T) {
	o, err := newOracle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for step := range o.steps {
		switch o.steps[step].Name {
		case "out of order", "process 3", "and finish it", "process fifth", "complete in every way":
		default:
			continue
		}
		torn := tear(t, step)
		rng := rand.New(rand.NewPCG(uint64(step), 1))
		for at := torn.synced; at <= torn.end; at += trial.Count(97, 3) {
			for _, garbage := range []bool{false, true} {
				tried++
				if err := torn.reopened(t, o, at, garbage, rng); err != nil {
					t.Fatalf("%s, whose entry is at %d to %d, is torn at %d, garbage %v: %v", o.steps[step].Name, torn.synced, torn.end, at, garbage, err)
				}
			}
		}
	}
	trial.Report(t, "power losses", "%d that tore the last entry at a byte", tried)
}

// reopened opens what is left when the log is written only up to a byte, followed
// by what was there before or by anything.
func (c *torn) reopened(t *testing.T, o *oracle, at int, garbage bool, rng *rand.Rand) error {
	fs := disk.Copy(c.left)
	content, err := disk.Content(fs, "store/"+c.log)
	if err != nil {
		return err
	}
	for i := at; i < len(content) && i < c.end; i++ {
		content[i] = 0
		if garbage {
			content[i] = byte(rng.Uint32())
		}
	}
	if err := disk.Replace(fs, "store/"+c.log, content); err != nil {
		return err
	}
	r := course.Resume(kv.Options{FS: fs}, c.state)
	if err := r.Open(); err != nil {
		return fmt.Errorf("the store does not open: %w", err)
	}
	defer r.Close()
	view, err := r.View(t.Context())
	if err != nil {
		return err
	}
	if err := o.judgeView(t.Context(), c.state.Next, view); err != nil {
		return err
	}
	return sound(r)
}
