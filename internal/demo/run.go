package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/keyload/keyload/fault"
)

// Options are the command line of the demo.
type Options struct {
	Cluster bool    `help:"do it on three nodes on this machine, and kill the node that leads the busy shard"`
	Kills   int     `placeholder:"N" default:"3" help:"how often to kill the process that owns the store, 0 to 20 (default 3)"`
	Workers int     `placeholder:"N" default:"8" help:"competing workers of the queue and of each group, 1 to 16 (default 8)"`
	Seed    *uint64 `placeholder:"S" help:"repeat the kills and failures of a run that printed this seed"`
	Keep    bool    `help:"leave the store for other commands"`
	Plain   bool    `help:"lines of plain ASCII instead of a picture that changes"`

	Dir      string    `kong:"-"` // where the store goes; a temporary directory when empty
	JSON     bool      `kong:"-"` // one object on Out, progress on Err
	Out, Err io.Writer `kong:"-"`
	Terminal bool      `kong:"-"` // Out is a terminal
	// Suggest writes a command of this program as it can be typed; not used with
	// JSON.
	Suggest func(words ...string) string `kong:"-"`
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
	seed := uint64(rand.Uint32()) | 1
	if o.Seed != nil {
		seed = *o.Seed
	}
	input, err := readInput()
	if err != nil {
		return err
	}
	dir, remove, err := makeDir(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()

	show := newProgress(o, len(input), messages(input))
	started := time.Now()
	r := &run{
		identity: identity{seed, started.UnixMilli()}, options: o, dir: dir, input: input, show: show,
		finished: map[string]bool{}, maxRuns: map[string]int64{}, summary: Summary{Seed: seed, Workers: o.Workers},
	}
	lives := r.lives
	if o.Cluster {
		lives = r.nodes
	}
	f, err := lives(ctx)
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

// makeDir makes the directory of the store and says how to remove it.
func makeDir(o Options) (dir string, remove func() error, err error) {
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
