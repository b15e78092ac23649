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
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/course"
	"github.com/keyload/keyload/internal/sim/disk"
	"github.com/keyload/keyload/internal/sim/trial"
)

// A bit of a file changes, its end is cut off, or it is gone: opening the store
// says which file is damaged, or each read answers exactly what is stored or that
// it met damage. With the bytes as they were everything is there again. What a
// power loss could have left as well is docs/storage.md: the last entry of the
// newest log of a process that was killed, and whatever such a log was cut off.
func TestDamageIsNamedAndNeverAnsweredWith(t *testing.T) {
	seed := trial.Seed(t, 1)
	o, err := newOracle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := &damages{t: t, ctx: t.Context(), oracle: o, room: make(chan struct{}, runtime.GOMAXPROCS(0)), counts: map[string]int{}, met: map[string]int{}}
	for _, step := range o.quiet() {
		for _, closed := range []bool{false, true} {
			i, err := d.image(step, closed)
			if err != nil {
				t.Fatal(err)
			}
			d.all(i, rand.New(rand.NewPCG(seed, uint64(step))))
		}
	}
	d.trials.Wait()
	for _, what := range []string{"flipped table", "flipped log", "flipped manifest", "cut table", "cut manifest", "gone table", "gone manifest", "gone marker", "gone log"} {
		if d.met[what] == 0 {
			t.Errorf("no %s was met: the test tests nothing", what)
		}
	}
	trial.Replay(t, "./internal/sim", t.Name(), seed)
	trial.Report(t, "disk faults", "damaged files: %v; damage said: %v", d.counts, d.met)
}

// quiet are numbers of steps before which at least four commands of one shard
// follow each other, so that each is one entry of the log.
func (o *oracle) quiet() (steps []int) {
	run := 0
	for i := range o.steps {
		if !o.steps[i].Whole() {
			if run >= 4 {
				steps = append(steps, i)
			}
			run = 0
			continue
		}
		run++
	}
	if trial.Long() {
		return steps
	}
	return []int{steps[len(steps)/3], steps[len(steps)-1]}
}

// image is what a process left of a store.
type image struct {
	fs     *vfs.MemFS
	state  course.State
	closed bool
	view   map[string][]string // what every query must answer
	log    string              // the newest one, where its process was killed
	ends   map[int]int         // and how long it was before the last steps
}

type damages struct {
	t      *testing.T
	ctx    context.Context
	oracle *oracle
	room   chan struct{}
	trials sync.WaitGroup

	mu     sync.Mutex
	counts map[string]int // trials, by damage and kind of file
	met    map[string]int // those in which damage was said
}

// image carries the course out up to a step and ends the process.
func (d *damages) image(step int, closed bool) (*image, error) {
	mem := vfs.NewCrashableMem()
	fs := disk.Watch(mem, func(disk.Sync) {})
	r := course.Start(kv.Options{FS: fs})
	if err := r.Open(); err != nil {
		return nil, err
	}
	i := &image{closed: closed, ends: map[int]int{}}
	for at := step - 4; at <= step; at++ {
		if err := r.Until(d.ctx, at); err != nil {
			return nil, err
		}
		i.log, i.ends[at] = fs.Newest()
	}
	i.state = r.State()
	var err error
	if i.view, _, err = r.Examine(d.ctx); err != nil {
		return nil, err
	}
	i.fs = mem.CrashClone(vfs.CrashCloneCfg{})
	err = r.Close()
	if closed {
		i.fs, i.log = mem.CrashClone(vfs.CrashCloneCfg{}), ""
	}
	return i, err
}

// all damages every file of an image in every way, or in some of each.
func (d *damages) all(i *image, rng *rand.Rand) {
	names, err := i.fs.List("store")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, name := range names {
		whole, err := disk.Content(i.fs, "store/"+name)
		if err != nil {
			d.t.Fatal(err)
		}
		size := disk.Written(whole)
		if name == i.log {
			size = i.ends[i.state.Next] // one that is used again is longer
		}
		d.try(i, name, "gone", 0, whole)
		n := trial.Count(3, 25)
		for range min(n, size) {
			d.try(i, name, "flipped", rng.IntN(size), whole)
			d.try(i, name, "cut", rng.IntN(size), whole)
		}
		if size > 0 { // the ends, where headers and footers are
			d.try(i, name, "flipped", 0, whole)
			d.try(i, name, "flipped", size-1, whole)
			d.try(i, name, "cut", size-1, whole)
		}
	}
}

// try damages one file of a copy in one way.
func (d *damages) try(i *image, name, way string, at int, whole []byte) {
	if d.t.Failed() {
		return
	}
	fs := disk.Copy(i.fs)
	var err error
	switch path := "store/" + name; way {
	case "gone":
		err = fs.Remove(path)
	case "flipped":
		err = disk.Flip(fs, path, at)
	case "cut":
		err = disk.Replace(fs, path, whole[:at])
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.room <- struct{}{}
	d.trials.Go(func() {
		defer func() { <-d.room }()
		said, err := d.judge(i, fs, name, way, at)
		if err == nil && said {
			err = d.repair(i, fs, name, whole)
		}
		what := way + " " + disk.Kind(name)
		d.mu.Lock()
		d.counts[what]++
		if said {
			d.met[what]++
		}
		d.mu.Unlock()
		if err != nil {
			d.t.Errorf("%s %s at %d of %d, before step %d, closed %v: %v", name, way, at, len(whole), i.state.Next, i.closed, err)
		}
	})
}

// judge opens a damaged copy and reads everything. said means that something
// spoke of damage.
func (d *damages) judge(i *image, fs *vfs.MemFS, name, way string, at int) (said bool, err error) {
	r := course.Resume(kv.Options{FS: fs}, i.state)
	if err := r.Open(); err != nil {
		return true, named(err, name)
	}
	defer func() { err = errors.Join(err, closedDamaged(r.Close())) }()
	answers, met, err := r.Examine(d.ctx)
	if err != nil {
		return false, err
	}
	for _, m := range met {
		if err := named(m, name); err != nil {
			return true, err
		}
	}
	report, cerr := check.Store(context.Background(), r.Store(), nil)
	switch {
	case cerr != nil && fault.CodeOf(cerr) != fault.Corruption:
		return false, cerr
	case cerr == nil && len(report.Findings) > 0:
		return false, fmt.Errorf("the check finds %v", report.Findings[0])
	}
	said = len(met) > 0 || cerr != nil
	if name == i.log && !said {
		return false, d.judgeLog(i, way, at, answers)
	}
	return said, same(i.view, answers)
}

// same compares what queries were answered; a query may be missing.
func same(want, got map[string][]string) error {
	for question, lines := range got {
		if d := course.Difference(want[question], lines); d != "" {
			return fmt.Errorf("a wrong answer: %s:\n%s", question, d)
		}
	}
	return nil
}

// judgeLog holds damage to the newest log of a killed process, of which nobody
// said anything, to what cannot be told from a power loss: the last entry, or the
// entries that were cut off.
func (d *damages) judgeLog(i *image, way string, at int, got map[string][]string) error {
	if way == "gone" {
		return errors.New("nobody missed it")
	}
	whole := same(i.view, got)
	if whole == nil {
		return nil
	}
	last := i.state.Next - 1
	for last > i.state.Next-4 && i.ends[last] == i.ends[i.state.Next] { // a command that needed no entry
		last--
	}
	if way == "flipped" {
		if at < i.ends[last] {
			return fmt.Errorf("it is not in the last entry, which begins at %d, and: %w", i.ends[last], whole)
		}
		return d.looksBefore(last, got)
	}
	for step := i.state.Next - 1; step > i.state.Next-4; step-- {
		if at >= i.ends[step] {
			return d.looksBefore(step, got)
		}
	}
	return nil // some earlier state, which the check has found sound
}

func (d *damages) looksBefore(step int, got map[string][]string) error {
	want, err := d.oracle.before(d.ctx, step)
	if err != nil {
		return err
	}
	var lines []string
	for _, l := range got {
		lines = append(lines, l...)
	}
	if diff := course.Difference(want.view, lines); diff != "" {
		return fmt.Errorf("it is no state before step %d:\n%s", step, diff)
	}
	return nil
}

// named wants an error of damage that names the file. Pebble knows a table by its
// number, and the number of a marker stands nowhere else.
func named(err error, name string) error {
	short := strings.TrimSuffix(name, ".sst")
	if disk.Kind(name) == "marker" {
		short = strings.Join(strings.Split(name, ".")[:2], ".")
	}
	switch {
	case fault.CodeOf(err) != fault.Corruption:
		return fmt.Errorf("the code is %s: %w", fault.CodeOf(err), err)
	case !strings.Contains(err.Error(), short):
		return fmt.Errorf("the file is not named: %w", err)
	}
	return nil
}

// closedDamaged lets a store say that it has met damage when it is closed.
func closedDamaged(err error) error {
	if err == nil || errors.Is(err, kv.ErrFailed) {
		return nil
	}
	return err
}

// repair puts the bytes back, and everything must be there.
func (d *damages) repair(i *image, fs *vfs.MemFS, name string, whole []byte) error {
	if err := disk.Replace(fs, "store/"+name, whole); err != nil {
		return err
	}
	r := course.Resume(kv.Options{FS: fs}, i.state)
	if err := r.Open(); err != nil {
		return fmt.Errorf("with its bytes back: %w", err)
	}
	answers, met, err := r.Examine(d.ctx)
	if err == nil && len(met) > 0 {
		err = met[0]
	}
	if err == nil && len(answers) != len(i.view) {
		err = fmt.Errorf("%d queries are answered, want %d", len(answers), len(i.view))
	}
	return errors.Join(err, same(i.view, answers), sound(r), r.Close())
}
