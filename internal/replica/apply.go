package replica

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
)

// work is what the loop hands to a shard's apply goroutine.
type work struct {
	entries   []*pb.Entry
	members   []*pb.ConfState // after each change of members among the entries
	changes   []flightID      // the ids of those
	responses []*pb.Message   // for the loop, when all of it is applied
	install   *saving         // a snapshot instead of entries
}

// applier brings committed entries into the state of a shard, one goroutine a shard.
type applier struct {
	s *shard
	m *machine.Machine

	applied  machine.Applied // of the state; the goroutine's own
	index    atomic.Uint64   // of it
	position atomic.Uint64   // commands applied
	nextDue  atomic.Int64
	points   points

	mu      sync.Mutex
	moved   *sync.Cond // index moved, the shard failed, or work came
	queue   []*work
	head    machine.Head
	counted commitlog.Status // Entries, Rows, Bytes and Work
	failed  error
	stops   bool
	done    chan struct{}

	view sync.RWMutex // locked while the state is that of no entry
}

func newApplier(s *shard, m *machine.Machine, at machine.Applied) *applier {
	a := &applier{s: s, done: make(chan struct{})}
	a.moved = sync.NewCond(&a.mu)
	a.points.warn = s.warnOf
	a.adopt(m, at)
	return a
}

// adopt takes the machine of a state that was read from the store.
func (a *applier) adopt(m *machine.Machine, at machine.Applied) {
	a.changed()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.m, a.applied, a.head = m, at, m.Head()
	a.index.Store(at.Index)
	a.position.Store(a.head.Position)
	a.nextDue.Store(m.NextDue())
	a.points.begin(&at, a.head)
	a.moved.Broadcast()
}

func (a *applier) put(w *work) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(a.queue, w)
	a.moved.Broadcast()
}

// next waits for work; nil when there will be none.
func (a *applier) next() *work {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) == 0 && !a.stops {
		a.moved.Wait()
	}
	if a.stops || a.failed != nil {
		return nil
	}
	w := a.queue[0]
	a.queue = a.queue[1:]
	return w
}

func (a *applier) run() {
	defer close(a.done)
	for w := a.next(); w != nil; w = a.next() {
		if err := a.carry(w); err != nil {
			a.s.h.cfg.Logger.Error("a shard has stopped on this node", "shard", a.s.number, "error", err.Error())
			a.fail(err)
			a.s.h.in.call(func(l *loop) { a.s.group.stop(err) })
			return
		}
	}
}

func (a *applier) carry(w *work) (err error) {
	defer func() { // damage that a handler did not expect must stop this shard, not the process
		if r := recover(); r != nil {
			a.s.h.cfg.Logger.Error("apply panicked", "shard", a.s.number, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fmt.Errorf("an entry could not be applied: %v", r)
		}
	}()
	if w.install != nil {
		return a.install(w.install)
	}
	changes := 0
	for _, e := range w.entries {
		if e.GetIndex() != a.applied.Index+1 {
			return fmt.Errorf("entry %d came after entry %d", e.GetIndex(), a.applied.Index)
		}
		at := a.applied
		at.Index, at.Term = e.GetIndex(), e.GetTerm()
		if e.GetType() != pb.EntryNormal {
			at.Voters, at.Learners = membersOf(w.members[changes])
			changes++
		}
		if err := a.entry(e, at); err != nil {
			return err
		}
	}
	last := position{a.applied.Index, a.applied.Term}
	a.s.h.in.call(func(*loop) { a.s.group.handled(w, last) })
	return nil
}

// entry applies one entry and answers those who wait for it here.
func (a *applier) entry(e *pb.Entry, at machine.Applied) error {
	own, lost := a.s.proposals.reached(e)
	for _, f := range lost {
		f.lost()
	}
	outcomes, hints, pending, err := a.evaluate(e, own, &at)
	if err == nil {
		err = pending.Wait()
	}
	if err != nil {
		if own != nil {
			own.settle(unknown())
		}
		return fmt.Errorf("entry %d of term %d: %w", e.GetIndex(), e.GetTerm(), err)
	}
	head, due := a.m.Head(), a.m.NextDue()
	a.changed()
	a.mu.Lock()
	a.applied, a.head = at, head
	a.counted.Entries++
	a.counted.Rows += uint64(pending.Rows)
	a.counted.Bytes += uint64(pending.Bytes)
	a.counted.Work = a.m.Work()
	a.index.Store(at.Index)
	a.position.Store(head.Position)
	a.moved.Broadcast()
	a.mu.Unlock()
	if old := a.nextDue.Swap(due); due != old && due != 0 {
		a.s.tellDue()
	}
	if own != nil {
		own.applied(outcomes)
	}
	for _, h := range hints {
		a.s.h.cfg.Hint(h)
	}
	if wrong := a.points.reached(&at, head); wrong != nil {
		return a.differ(wrong)
	}
	return nil
}

// changed tells that the state is another one, before anybody is told that it is.
func (a *applier) changed() {
	if tell := a.s.h.cfg.Applied; tell != nil {
		tell(a.s.number)
	}
}

// evaluate lets the machine carry an entry out. What this node has proposed itself is
// still there in decoded form.
func (a *applier) evaluate(e *pb.Entry, own *flight, at *machine.Applied) ([]machine.Outcome, []op.Hint, *kv.Pending, error) {
	var entry *machine.Entry
	switch {
	case own != nil:
		entry = own.entry
	case e.GetType() == pb.EntryNormal && len(e.GetData()) > 0:
		if len(e.GetData()) < len(flightID{}) {
			return nil, nil, nil, fmt.Errorf("%w: it is shorter than its id", kv.ErrCorrupt)
		}
		var err error
		if entry, err = machine.DecodeEntry(e.GetData()[len(flightID{}):]); err != nil {
			return nil, nil, nil, err
		}
	default:
		pending, err := a.m.Note(at)
		return nil, nil, pending, err
	}
	return a.m.ApplyAt(at, entry)
}

// fail stops the shard: nothing more is applied, and nobody waits for it.
func (a *applier) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed == nil {
		a.failed = err
	}
	a.queue = nil
	a.moved.Broadcast()
}

func (a *applier) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

// stop ends the goroutine and waits for it.
func (a *applier) stop() {
	a.mu.Lock()
	a.stops = true
	a.moved.Broadcast()
	a.mu.Unlock()
	<-a.done
}

// wait returns once an entry is applied.
func (a *applier) wait(ctx context.Context, index uint64) error {
	if a.index.Load() >= index {
		return a.readable()
	}
	wake := func() {
		a.mu.Lock()
		a.moved.Broadcast()
		a.mu.Unlock()
	}
	defer context.AfterFunc(ctx, wake)()
	defer context.AfterFunc(a.s.h.life, wake)()
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		switch {
		case a.failed != nil:
			return stopped(a.s.number, a.failed)
		case a.index.Load() >= index:
			return nil
		case a.s.h.life.Err() != nil:
			return closing()
		case ctx.Err() != nil:
			return fault.New(fault.Cancelled, "cancelled", "the caller went away while waiting for the state of this node to be recent enough")
		}
		a.moved.Wait()
	}
}

// readable refuses reads of a shard that has stopped: others know more.
func (a *applier) readable() error {
	if err := a.failure(); err != nil {
		return stopped(a.s.number, err)
	}
	return nil
}

// snapshot is the state after some entry. Close it.
func (a *applier) snapshot() (*kv.Snapshot, error) {
	if !a.view.TryRLock() {
		return nil, fault.New(fault.OwnershipLost, "installing", "shard %d is being copied to this node; ask another one", a.s.number)
	}
	defer a.view.RUnlock()
	return a.s.h.cfg.Store.NewSnapshot(), nil
}

func closing() error {
	return fault.New(fault.OwnershipLost, "store_closed", "the store is closing; nothing happened")
}

func (a *applier) status() commitlog.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	st := a.counted
	st.Applied, st.Position, st.Durable = a.head.Position, a.head.Position, a.head.Position
	st.Digest, st.Time, st.Epoch, st.Err = a.head.Digest, a.head.Time, a.head.Epoch, a.failed
	return st
}
