package course

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/sim/trial"
	"github.com/keyload/keyload/internal/table"
)

const (
	// Began is the instant at which the course begins, in milliseconds.
	Began = int64(1_800_000_000_000)
	// shards of the store; the course's partitions are in both.
	shards = 2
	dir    = "store"
)

// State is how far a run is: everything that a caller knows when its store loses
// its power.
type State struct {
	Next    int   // step that is carried out next, or is being carried out
	Now     int64 // milliseconds
	Memory  Memory
	Answers []Answer
	Views   map[int][]string // by step
	Digests map[Place]string // of every place where a shard stood between two steps
}

func (s State) clone() State {
	s.Memory, s.Answers = s.Memory.clone(), slices.Clone(s.Answers)
	s.Views, s.Digests = maps.Clone(s.Views), maps.Clone(s.Digests)
	return s
}

// Answer is a command that was answered.
type Answer struct {
	Step   int
	ID     string
	Stored bool // there is a receipt: repeating the command changes nothing
	Reply  string

	operation *api.Operation
	request   any
}

// Run carries the course out on one store.
type Run struct {
	steps   []Step
	options kv.Options
	store   *kv.Store
	engine  *engine.Engine
	now     atomic.Int64
	dues    map[table.DueKind]bool

	mu    sync.Mutex
	state State
}

// Place is a position of a shard's log.
type Place struct {
	Shard    uint32
	Position uint64
}

// Start is a run at its first step; Resume goes on where another one was. The
// options name the file system. The store must be opened.
func Start(options kv.Options) *Run {
	return Resume(options, State{Now: Began, Memory: Memory{map[string]string{}, map[string]uint64{}}, Views: map[int][]string{}, Digests: map[Place]string{}})
}

// Resume is a run that stands where another one stood.
func Resume(options kv.Options, from State) *Run {
	options.CacheBytes = 1 << 20
	r := &Run{steps: Steps(), options: options, dues: map[table.DueKind]bool{}}
	r.state = from.clone()
	r.now.Store(from.Now)
	return r
}

// Open opens the store, making it when there is none.
func (r *Run) Open() error {
	store, err := kv.Open(dir, r.options)
	if err != nil {
		return engine.OpenFault(dir, err)
	}
	e, err := engine.Open(engine.Config{Store: store, Shards: shards, Now: func() time.Time { return time.UnixMilli(r.now.Load()) }})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	r.store, r.engine = store, e
	return nil
}

// Close closes the store, if it is open.
func (r *Run) Close() error {
	if r.engine == nil {
		return nil
	}
	err := errors.Join(r.engine.Close(), r.store.Close())
	r.engine, r.store = nil, nil
	return err
}

// Store is the open store below.
func (r *Run) Store() *kv.Store { return r.store }

// Failed says that a call was answered by a store that is not well, and not by
// what is stored.
func Failed(err error) bool {
	switch fault.CodeOf(err) {
	case fault.RecoveryRequired, fault.UnknownWriteOutcome, fault.Corruption, fault.OwnershipLost, fault.Cancelled:
		return true
	}
	return fault.From(err) == nil
}

// Frozen calls fn with the state while no answer can be added to it.
func (r *Run) Frozen(fn func(State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn(r.state.clone())
}

// State is how far the run is.
func (r *Run) State() (s State) {
	r.Frozen(func(now State) { s = now })
	return s
}

// Finish carries out every step that is left.
func (r *Run) Finish(ctx context.Context) error { return r.Until(ctx, len(r.steps)) }

// Until carries out the steps before the one with this number.
func (r *Run) Until(ctx context.Context, end int) error {
	for {
		at := r.State()
		if at.Next >= end {
			return nil
		}
		if err := r.step(ctx, at); err != nil {
			return fmt.Errorf("step %d, %s: %w", at.Next, r.steps[at.Next].Name, err)
		}
	}
}

// step carries out the next step. A command is answered once its answer is in the
// state.
func (r *Run) step(ctx context.Context, at State) error {
	s := r.steps[at.Next]
	if s.later > 0 {
		r.passed(func(now *State) { now.Now += s.later })
		return nil
	}
	if s.Operation == nil {
		err := s.act(ctx, r)
		if err == nil {
			r.passed(func(*State) {})
		}
		return err
	}
	req := s.request(&at.Memory)
	api.ApplyDefaults(req)
	req.SetCommandID(commandID(at.Next, at.Now))
	a := Answer{Step: at.Next, ID: req.GetCommandID(), operation: s.Operation, request: req}
	resp, err := r.send(ctx, &a)
	switch {
	case err != nil && s.refused == "", resp != nil && s.refused != "", err != nil && fault.From(err).Reason != s.refused:
		return fmt.Errorf("expected %q, answered %s: %w", s.refused, a.Reply, err)
	}
	r.passed(func(now *State) {
		now.Answers = append(now.Answers, a)
		if s.keep != nil && err == nil {
			s.keep(&now.Memory, resp)
		}
	})
	return nil
}

// passed moves on to the next step.
func (r *Run) passed(change func(*State)) {
	now := r.Digests()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.state.Digests, now)
	change(&r.state)
	r.state.Next++
	r.now.Store(r.state.Now)
}

// Digests are the digests of all shards where they stand; none of a store that is
// closed.
func (r *Run) Digests() map[Place]string {
	out := map[Place]string{}
	if r.engine != nil {
		for _, s := range r.engine.Status().Shards {
			out[Place{s.Shard, s.Position}] = s.Digest
		}
	}
	return out
}

// commandID is the id of a step's command: version 7, of the instant of its first
// use.
func commandID(step int, now int64) string {
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[:8], uint64(now)<<16)
	u[6], u[8] = 0x70, 0x80
	binary.BigEndian.PutUint32(u[12:], uint32(step+1))
	return u.String()
}

// send proposes a command and notes its reply.
func (r *Run) send(ctx context.Context, a *Answer) (resp any, err error) {
	resp, err = r.engine.Do(ctx, r.engine.Root(), a.operation, a.request)
	a.Reply, a.Stored = trial.Reply(resp, err)
	return resp, err
}

// Repeated is what a command that was answered answers when it is repeated.
type Repeated struct {
	Answer Answer
	Reply  string
}

// Repeat repeats every command that has a receipt under its id.
func (r *Run) Repeat(ctx context.Context) ([]Repeated, error) {
	var out []Repeated
	for _, a := range r.State().Answers {
		if !a.Stored {
			continue
		}
		again := a
		_, err := r.send(ctx, &again)
		if err != nil && Failed(err) {
			return out, err
		}
		out = append(out, Repeated{a, again.Reply})
	}
	return out, nil
}
