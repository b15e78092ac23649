package solo

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
)

const (
	// entryCommands and entryBytes bound one entry.
	entryCommands = 1024
	entryBytes    = 1 << 20
	// queued bounds each of the two kinds of commands that wait before the apply
	// goroutine; admission bounds them further.
	queued = 8192
)

// proposal is one waiting command.
type proposal struct {
	cmd    machine.Command
	result chan result
	left   func()
}

// answer gives a proposal its result; the log holds it no more.
func (p *proposal) answer(r result) {
	p.left()
	p.result <- r
}

type result struct {
	out machine.Outcome
	err error
}

// entry is one that is evaluated, on its way to the disk.
type entry struct {
	proposals []proposal
	before    *kv.Snapshot // the state without it
	outcomes  []machine.Outcome
	hints     []op.Hint
	pending   *kv.Pending
	head      machine.Head
	work      kv.Work
}

type shard struct {
	number uint16
	cfg    commitlog.Config
	m      *machine.Machine
	queue  chan proposal
	urgent chan proposal // of these an entry takes first
	syncs  chan entry
	// results are channels for reuse: one holds one value and is empty again once
	// that value was received. The shard has its own, since a pool of all stores
	// would carry channels into other synctest bubbles.
	results sync.Pool
	quit    chan struct{}
	done    chan struct{}
	once    sync.Once

	applied    atomic.Uint64 // position handed to the store
	durable    atomic.Uint64 // position known to be on disk
	nextDue    atomic.Int64
	dueChanged chan struct{}

	mu      sync.Mutex
	moved   *sync.Cond // durable moved, or the shard failed
	head    machine.Head
	work    kv.Work
	entries uint64
	rows    uint64
	bytes   uint64
	failed  error
	settled bool // failed, and last is set
	closing bool

	view sync.RWMutex // held while last is read
	last *kv.Snapshot // of a stopped shard: its last state that is durable
}

func start(cfg commitlog.Config, number uint16, m *machine.Machine) *shard {
	s := &shard{
		number: number, cfg: cfg, m: m,
		queue: make(chan proposal, queued), urgent: make(chan proposal, queued), syncs: make(chan entry),
		quit: make(chan struct{}), done: make(chan struct{}), dueChanged: make(chan struct{}, 1),
		head: m.Head(),
	}
	s.results.New = func() any { return make(chan result, 1) }
	s.moved = sync.NewCond(&s.mu)
	s.applied.Store(s.head.Position)
	s.durable.Store(s.head.Position)
	s.nextDue.Store(m.NextDue())
	go s.apply()
	go s.sync()
	return s
}

func (s *shard) propose(ctx context.Context, cmd machine.Command, urgent bool, left func()) (machine.Outcome, error) {
	if err := s.failure(); err != nil {
		left()
		return machine.Outcome{}, commitlog.Stopped(s.number, err)
	}
	p := proposal{cmd, s.results.Get().(chan result), left}
	queue := s.queue
	if urgent {
		queue = s.urgent
	}
	select {
	case queue <- p:
	case <-s.quit:
		left()
		return machine.Outcome{}, commitlog.Closed()
	case <-ctx.Done():
		left()
		return machine.Outcome{}, commitlog.Unsubmitted()
	}
	select {
	case r := <-p.result:
		s.results.Put(p.result)
		return r.out, r.err
	case <-ctx.Done():
		// The channel is left to the garbage collector: its answer is still to come.
		return machine.Outcome{}, commitlog.CallerLeft()
	case <-s.done:
		select {
		case r := <-p.result:
			return r.out, r.err
		default:
			return machine.Outcome{}, commitlog.Closed()
		}
	}
}

// apply evaluates entries. It takes whatever waits, never waits for more, and
// stays at most one entry ahead of the disk; commands that arrive meanwhile join
// the next entry.
func (s *shard) apply() {
	defer close(s.syncs)
	for {
		var first proposal
		select {
		case first = <-s.urgent:
		case first = <-s.queue:
		case <-s.quit:
			s.drain(commitlog.Closed())
			return
		}
		e, err := s.evaluate(s.gather(first))
		if err != nil {
			s.fail(err)
			s.syncs <- e
			s.refuse()
			return
		}
		s.syncs <- e
	}
}

// gather fills an entry: urgent commands first, so that they wait for one entry
// and not for all that waits; but only up to half of it while others wait, so that
// a flood of them never keeps those out.
func (s *shard) gather(first proposal) []proposal {
	batch := []proposal{first}
	bytes := len(first.cmd.Request)
	take := func(queue chan proposal, most, mostBytes int) {
		for len(batch) < most && bytes < mostBytes {
			select {
			case p := <-queue:
				batch = append(batch, p)
				bytes += len(p.cmd.Request)
			default:
				return
			}
		}
	}
	take(s.urgent, entryCommands/2, entryBytes/2)
	take(s.queue, entryCommands, entryBytes)
	take(s.urgent, entryCommands, entryBytes)
	return batch
}

func (s *shard) evaluate(batch []proposal) (entry, error) {
	le := machine.Entry{At: s.cfg.Now(), Seed: s.cfg.Seed(), Epoch: 1, Commands: make([]machine.Command, len(batch))}
	for i := range batch {
		le.Commands[i] = batch[i].cmd
	}
	s.cfg.Store.Stage(kv.StageEncoded)
	// A snapshot may show the entry from here on: readers wait for this position.
	s.applied.Store(s.m.Head().Position + uint64(len(batch)))
	e := entry{proposals: batch, before: s.cfg.Store.NewSnapshot()}
	var err error
	e.outcomes, e.hints, e.pending, err = s.m.Apply(&le)
	e.head, e.work = s.m.Head(), s.m.Work()
	if err == nil {
		s.noteDue()
	}
	return e, err
}

func (s *shard) noteDue() {
	due := s.m.NextDue()
	if old := s.nextDue.Swap(due); due != old && due != 0 {
		select {
		case s.dueChanged <- struct{}{}:
		default:
		}
	}
}

// sync waits for each entry to be durable, then answers.
func (s *shard) sync() {
	defer close(s.done)
	for e := range s.syncs {
		err := s.failure()
		if err == nil {
			err = e.pending.Wait()
		}
		if err != nil {
			s.stopAt(err, e.before)
			for _, p := range e.proposals {
				p.answer(result{err: unknown(s.number, err)})
			}
			continue
		}
		e.before.Close()
		s.mu.Lock()
		s.head, s.work, s.entries = e.head, e.work, s.entries+1
		s.rows, s.bytes = s.rows+uint64(e.pending.Rows), s.bytes+uint64(e.pending.Bytes)
		s.durable.Store(e.head.Position)
		s.moved.Broadcast()
		s.mu.Unlock()
		for i, p := range e.proposals {
			p.answer(result{out: e.outcomes[i]})
			s.cfg.Store.Stage(kv.StageReplied)
		}
		for _, h := range e.hints {
			s.cfg.Hint(h)
		}
	}
}

// unknown is the answer to commands whose entry failed on its way to the disk:
// it may or may not be found after a restart.
func unknown(shard uint16, cause error) error {
	return fault.New(fault.UnknownWriteOutcome, "write_failed",
		"shard %d could not make the command durable: %v. Restart the store, then repeat the command with the same id to learn its outcome", shard, cause)
}

// refuse answers everything until the shard is told to stop.
func (s *shard) refuse() {
	for {
		select {
		case p := <-s.urgent:
			p.answer(result{err: commitlog.Stopped(s.number, s.failure())})
		case p := <-s.queue:
			p.answer(result{err: commitlog.Stopped(s.number, s.failure())})
		case <-s.quit:
			s.drain(commitlog.Stopped(s.number, s.failure()))
			return
		}
	}
}

func (s *shard) drain(err error) {
	for {
		select {
		case p := <-s.urgent:
			p.answer(result{err: err})
		case p := <-s.queue:
			p.answer(result{err: err})
		default:
			return
		}
	}
}

func (s *shard) fail(err error) {
	s.mu.Lock()
	if s.failed == nil {
		s.failed = err
	}
	s.moved.Broadcast()
	s.mu.Unlock()
}

// stopAt stops the shard at an entry that did not become durable. Readers go on
// with the state before the first of those: what came after it can be lost.
func (s *shard) stopAt(err error, before *kv.Snapshot) {
	s.view.Lock()
	if s.last == nil {
		s.last, before = before, nil
	}
	s.view.Unlock()
	if before != nil {
		before.Close()
	}
	s.mu.Lock()
	if s.failed == nil {
		s.failed = err
	}
	s.settled = true
	s.moved.Broadcast()
	s.mu.Unlock()
}

// read runs fn on a state all of which is durable when read returns.
func (s *shard) read(ctx context.Context, fn func(*kv.Snapshot) error) error {
	snap := s.cfg.Store.NewSnapshot()
	err := fn(snap)
	if cerr := snap.Close(); err == nil {
		err = cerr
	}
	berr := s.barrier(ctx)
	if berr == nil {
		return err
	}
	s.view.RLock()
	defer s.view.RUnlock()
	if s.last == nil {
		return berr
	}
	return fn(s.last.Share())
}

// forget releases the state that readers of a stopped shard were served from.
func (s *shard) forget() error {
	s.view.Lock()
	defer s.view.Unlock()
	if s.last == nil {
		return nil
	}
	err := s.last.Close()
	s.last = nil
	return err
}

func (s *shard) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

var errClosing = errors.New("the store is closing")

func (s *shard) barrier(ctx context.Context) error {
	target := s.applied.Load()
	if s.durable.Load() >= target {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		s.moved.Broadcast()
		s.mu.Unlock()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.durable.Load() < target {
		switch {
		case s.settled:
			return commitlog.Stopped(s.number, s.failed)
		case s.closing:
			return fault.New(fault.OwnershipLost, "store_closed", "%v", errClosing)
		case ctx.Err() != nil:
			return fault.New(fault.Cancelled, "cancelled", "the caller went away while waiting for a write to become durable")
		}
		s.moved.Wait()
	}
	return nil
}

func (s *shard) status() commitlog.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return commitlog.Status{
		Applied: s.applied.Load(), Position: s.head.Position, Durable: s.durable.Load(), Digest: s.head.Digest,
		Time: s.head.Time, Epoch: s.head.Epoch, Err: s.failed, Here: true,
		Entries: s.entries, Rows: s.rows, Bytes: s.bytes, Work: s.work,
	}
}

func (s *shard) stop() {
	s.once.Do(func() {
		s.mu.Lock()
		s.closing = true
		s.moved.Broadcast()
		s.mu.Unlock()
		close(s.quit)
	})
}
