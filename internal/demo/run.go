package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/keyload/keyload/fault"
)

// Options are the command line of the demo.
type Options struct {
	Kills   int    `placeholder:"N" default:"3" help:"how often to kill the process that owns the store, 0 to 20 (default 3)"`
	Workers int    `placeholder:"N" default:"8" help:"competing workers, 1 to 16 (default 8)"`
	Seed    uint64 `placeholder:"S" help:"repeat the kills and failures of a run that printed this seed"`
	Keep    bool   `help:"leave the store for other commands"`

	Dir      string    `kong:"-"` // where the store goes; a temporary directory when empty
	JSON     bool      `kong:"-"` // one object on Out, progress on Err
	Out, Err io.Writer `kong:"-"`
	Terminal bool      `kong:"-"` // Out is a terminal
}

const (
	maxKills   = 20
	maxWorkers = 16
)

// ErrNotProved says that the comparison found a difference, which was printed.
var ErrNotProved = errors.New("the store does not hold exactly what the input says")

// Run does the job, proves it and prints the proof. Errors: Validation,
// Conflict (reason directory_not_empty), ErrNotProved, and what a child that
// ended by itself said.
func Run(ctx context.Context, o Options) (err error) {
	if o.Kills < 0 || o.Kills > maxKills {
		return fault.Invalid("/kills", "must be 0 to %d", maxKills)
	}
	if o.Workers < 1 || o.Workers > maxWorkers {
		return fault.Invalid("/workers", "must be 1 to %d", maxWorkers)
	}
	if o.Seed == 0 {
		o.Seed = uint64(rand.Uint32()) | 1
	}
	input, err := readInput()
	if err != nil {
		return err
	}
	dir, remove, err := place(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()

	show := newProgress(o, len(input), messages(input))
	started := time.Now()
	r := &run{
		identity: identity{o.Seed, started.UnixMilli()}, options: o, dir: dir, input: input, show: show,
		finished: map[string]bool{}, summary: Summary{Seed: o.Seed, Workers: o.Workers},
	}
	f, err := r.lives(ctx)
	show.close()
	if err != nil {
		return err
	}
	v := judge(input, f)
	r.conclude(f, v, time.Since(started))
	if err := r.print(v); err != nil {
		return err
	}
	if !r.summary.proved(o.Kills) {
		return ErrNotProved
	}
	return nil
}

// place makes the directory of the store and says how to remove it.
func place(o Options) (dir string, remove func() error, err error) {
	keep := func() error { return nil }
	if o.Dir == "" {
		dir, err = os.MkdirTemp("", "keyload-demo-")
		if o.Keep {
			return dir, keep, err
		}
		return dir, func() error { return os.RemoveAll(dir) }, err
	}
	entries, err := os.ReadDir(o.Dir)
	missing := errors.Is(err, os.ErrNotExist)
	switch {
	case err != nil && !missing:
		return "", nil, err
	case len(entries) > 0:
		return "", nil, fault.New(fault.Conflict, "directory_not_empty",
			"%s is not empty; the demo needs a directory of its own, because it proves what is in it from its input alone", o.Dir)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return "", nil, err
	}
	if o.Keep {
		return o.Dir, keep, nil
	}
	return o.Dir, func() error { return removeMade(o.Dir, missing) }, nil
}

// removeMade removes what the demo made: everything in the directory, which was
// empty before, and the directory itself if it was not there.
func removeMade(dir string, whole bool) error {
	if whole {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// run is the parent's view of one demo.
type run struct {
	identity
	options  Options
	dir      string
	input    []delivery
	show     progress
	finished map[string]bool // messages whose processing was reported
	summary  Summary
}

// lives starts the child again after every kill until it is done, and has a
// fresh one read everything back.
func (r *run) lives(ctx context.Context) (*found, error) {
	r.show.say("%d deliveries, %d of them make a message; %d workers; seed %d", len(r.input), messages(r.input), r.options.Workers, r.seed)
	k := newKiller(r.seed, r.options.Workers, r.input)
	for r.summary.Kills < r.options.Kills {
		m := k.next(len(r.finished))
		killed, err := r.life(ctx, &m)
		if err != nil {
			return nil, err
		}
		if !killed {
			return nil, fmt.Errorf("kill %d was to come while %s, and the job was done before", r.summary.Kills+1, m.phase)
		}
	}
	if _, err := r.life(ctx, nil); err != nil {
		return nil, err
	}
	r.show.say("everything is done; reading it back in a fresh process")
	return r.readBack(ctx)
}

// life is one child from its start to its end: at its moment, or when it is
// done.
func (r *run) life(ctx context.Context, m *moment) (killed bool, err error) {
	p, err := startChild(ctx, "--dir", r.dir, "--seed", strconv.FormatUint(r.seed, 10),
		"--started", strconv.FormatInt(r.started, 10), "--workers", strconv.Itoa(r.options.Workers))
	if err != nil {
		return false, err
	}
	now := &tally{}
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	var due <-chan time.Time
	for {
		select {
		case l, ok := <-p.lines:
			quiet.Reset(silence)
			switch {
			case !ok:
				err = p.rest(nil)
				if ctx.Err() != nil {
					return false, ctx.Err()
				}
				return false, p.died(err)
			case l.Kind == lineFailed:
				p.rest(func(line) {})
				return false, fmt.Errorf("the process that owns the store gave up: %s", l.Text)
			case l.Kind == lineDone:
				// A report that a kill cut off is made up for: the queue is empty.
				r.show.finished(messages(r.input))
				return false, p.finish()
			}
			r.see(now, l)
			if m != nil && due == nil && m.reached(now.fed, now.finished) {
				due = time.After(m.delay)
			}
		case <-due:
			return true, r.killIt(p, now, m)
		case <-quiet.C:
			p.kill()
			p.rest(func(line) {})
			return false, fmt.Errorf("the process that owns the store reported nothing for %v", silence)
		}
	}
}

// tally is what one life has reported.
type tally struct{ fed, replayed, finished int }

// see takes note of a report.
func (r *run) see(now *tally, l line) {
	switch l.Kind {
	case lineFed:
		now.fed = l.Index + 1
		if l.Replayed {
			now.replayed++
			r.summary.ReplayedReceipts++
		}
		r.show.feeding(now.fed)
	case lineProcessed:
		now.finished++
		r.finished[l.Message] = true
		r.show.finished(len(r.finished))
	case lineRefused:
		r.summary.LateRefused++
	}
}

// killIt kills the child and reads what it had still reported.
func (r *run) killIt(p *process, now *tally, m *moment) error {
	if err := p.kill(); err != nil {
		return p.died(err)
	}
	ended := false
	err := p.rest(func(l line) {
		ended = ended || l.Kind == lineDone || l.Kind == lineFailed
		r.see(now, l)
	})
	if err == nil || ended {
		return fmt.Errorf("the process that owns the store ended before kill %d", r.summary.Kills+1)
	}
	r.summary.Kills++
	r.show.say("kill %d, while %s: delivery %d of %d was in (%d of them by receipt), %d of %d messages were finished",
		r.summary.Kills, m.phase, now.fed, len(r.input), now.replayed, len(r.finished), messages(r.input))
	return nil
}

// readBack runs a fresh child that reads everything.
func (r *run) readBack(ctx context.Context) (*found, error) {
	p, err := startChild(ctx, "--dir", r.dir, "--read")
	if err != nil {
		return nil, err
	}
	var f *found
	failure := ""
	err = p.rest(func(l line) {
		switch l.Kind {
		case lineFound:
			f = l.Found
		case lineFailed:
			failure = l.Text
		}
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case failure != "":
		return nil, fmt.Errorf("reading back: %s", failure)
	case err != nil || f == nil:
		return nil, p.died(err)
	}
	return f, nil
}
