package sim

import (
	"context"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/course"
)

// oracle tells what a store must show that never lost anything: it carries the
// course out on a disk that does not fail.
type oracle struct {
	steps []course.Step
	end   map[int][]string // what the looks of the course show

	mu sync.Mutex
	at map[int]*shown
}

// shown is what a store shows before it carries out a step.
type shown struct {
	once    sync.Once
	view    []string
	repeats []string // by answer that has a receipt; "" for the reply it had
	err     error
}

func newOracle(ctx context.Context) (*oracle, error) {
	o := &oracle{steps: course.Steps(), at: map[int]*shown{}}
	r := course.Start(kv.Options{FS: vfs.NewMem(), NoSync: true})
	if err := r.Open(); err != nil {
		return nil, err
	}
	if err := r.Finish(ctx); err != nil {
		return nil, err
	}
	o.end = r.State().Views
	return o, r.Close()
}

// before is what a store shows before a step.
func (o *oracle) before(ctx context.Context, step int) (*shown, error) {
	o.mu.Lock()
	s := o.at[step]
	if s == nil {
		s = &shown{}
		o.at[step] = s
	}
	o.mu.Unlock()
	s.once.Do(func() { s.err = s.ask(ctx, step) })
	return s, s.err
}

func (s *shown) ask(ctx context.Context, step int) error {
	r := course.Start(kv.Options{FS: vfs.NewMem(), NoSync: true})
	if err := r.Open(); err != nil {
		return err
	}
	if err := r.Until(ctx, step); err != nil {
		return err
	}
	var err error
	if s.view, err = r.View(ctx); err != nil {
		return err
	}
	again, err := r.Repeat(ctx)
	if err != nil {
		return err
	}
	for _, a := range again {
		reply := a.Reply
		if reply == a.Answer.Reply {
			reply = ""
		}
		s.repeats = append(s.repeats, reply)
	}
	return r.Close()
}

// judge says what is wrong with a store that has answered so many steps and may
// have carried out the next: repeated are its answers to repeated commands.
func (o *oracle) judge(ctx context.Context, next int, view []string, repeated []course.Repeated) error {
	done, err := o.before(ctx, next)
	if err != nil {
		return err
	}
	after := done
	if next < len(o.steps) {
		if after, err = o.before(ctx, next+1); err != nil {
			return err
		}
	}
	if err := o.judgeView(ctx, next, view); err != nil {
		return err
	}
	if len(repeated) != len(done.repeats) {
		return fmt.Errorf("%d commands have a receipt, want %d", len(repeated), len(done.repeats))
	}
	for i, r := range repeated {
		reply := r.Reply
		if reply == r.Answer.Reply {
			reply = ""
		}
		if reply != done.repeats[i] && reply != after.repeats[i] {
			return fmt.Errorf("step %d, %s, was answered:\n%s\nrepeated it answers:\n%s\nwhere it should: %q or %q",
				r.Answer.Step, o.steps[r.Answer.Step].Name, r.Answer.Reply, r.Reply, done.repeats[i], after.repeats[i])
		}
	}
	return nil
}

// judgeView says what is wrong with what such a store shows.
func (o *oracle) judgeView(ctx context.Context, next int, view []string) error {
	done, err := o.before(ctx, next)
	if err != nil {
		return err
	}
	d := course.Difference(done.view, view)
	if next == len(o.steps) || d == "" {
		if d != "" {
			return fmt.Errorf("after the course:\n%s", d)
		}
		return nil
	}
	if !o.steps[next].Whole() {
		return nil
	}
	after, err := o.before(ctx, next+1)
	if err != nil {
		return err
	}
	if e := course.Difference(after.view, view); e != "" {
		return fmt.Errorf("step %d, %s, is neither there nor absent. Had it not been carried out:\n%s\nHad it been:\n%s", next, o.steps[next].Name, d, e)
	}
	return nil
}

// judgeEnd says what is wrong with what the looks of a finished course showed.
func (o *oracle) judgeEnd(views map[int][]string) error {
	if len(views) != len(o.end) {
		return fmt.Errorf("the course looked %d times, want %d", len(views), len(o.end))
	}
	for step, want := range o.end {
		if d := course.Difference(want, views[step]); d != "" {
			return fmt.Errorf("%s, the store differs from one that lost nothing:\n%s", o.steps[step].Name, d)
		}
	}
	return nil
}
