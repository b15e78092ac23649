package replica

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/machine"
)

const (
	// entryCommands and entryBytes bound one entry.
	entryCommands = 1024
	entryBytes    = 1 << 20
	// queued bounds each of the two kinds of commands that wait; admission bounds
	// them further.
	queued = 8192
	// entriesInFlight bounds the entries of a shard that are proposed and not settled.
	entriesInFlight = 8
)

// proposal is one waiting command.
type proposal struct {
	cmd    machine.Command
	result chan result
	left   func()
}

type result struct {
	out machine.Outcome
	err error
}

// answer gives a proposal its result; the log holds it no more.
func (p *proposal) answer(r result) {
	p.left()
	p.result <- r
}

// proposals joins the waiting commands of a shard into entries, and knows which of
// those are on their way.
type proposals struct {
	s      *shard
	queue  chan proposal
	urgent chan proposal // of these an entry takes first
	slots  chan struct{} // one for each entry in flight
	done   chan struct{} // the goroutine has ended
	closed chan struct{} // everything is answered
	flights
}

func newProposals(s *shard) *proposals {
	return &proposals{
		s: s, queue: make(chan proposal, queued), urgent: make(chan proposal, queued),
		slots: make(chan struct{}, entriesInFlight), done: make(chan struct{}), closed: make(chan struct{}),
		flights: flights{byID: map[flightID]*flight{}},
	}
}

func (p *proposals) propose(ctx context.Context, cmd machine.Command, urgent bool, left func()) (machine.Outcome, error) {
	err := p.s.apply.failure()
	switch {
	case err != nil:
		err = stopped(p.s.number, err)
	case p.s.h.life.Err() != nil:
		err = commitlog.Closed()
	case !p.s.standing().mine:
		err = p.s.notLeader()
	}
	if err != nil {
		left()
		return machine.Outcome{}, err
	}
	w := proposal{cmd, make(chan result, 1), left}
	queue := p.queue
	if urgent {
		queue = p.urgent
	}
	select {
	case queue <- w:
	case <-p.s.h.life.Done():
		left()
		return machine.Outcome{}, commitlog.Closed()
	case <-ctx.Done():
		left()
		return machine.Outcome{}, commitlog.Unsubmitted()
	}
	select {
	case r := <-w.result:
		return r.out, r.err
	case <-ctx.Done():
		return machine.Outcome{}, commitlog.CallerLeft()
	case <-p.closed: // it may have come after the queue was emptied
		select {
		case r := <-w.result:
			return r.out, r.err
		default:
			return machine.Outcome{}, commitlog.Closed()
		}
	}
}

// run makes entries. It takes whatever waits and never waits for more; commands that
// arrive while every slot is taken join the next entry.
func (p *proposals) run() {
	defer close(p.done)
	for {
		select {
		case p.slots <- struct{}{}:
		case <-p.s.h.life.Done():
			return
		}
		var first proposal
		select {
		case first = <-p.urgent:
		case first = <-p.queue:
		case <-p.s.h.life.Done():
			return
		}
		p.submit(p.gather(first))
	}
}

// gather fills an entry: urgent commands first, so that they wait for one entry and
// not for all that waits; but only up to half of it while others wait, so that a
// flood of them never keeps those out.
func (p *proposals) gather(first proposal) []proposal {
	batch := []proposal{first}
	bytes := len(first.cmd.Request)
	take := func(queue chan proposal, most, mostBytes int) {
		for len(batch) < most && bytes < mostBytes {
			select {
			case w := <-queue:
				batch = append(batch, w)
				bytes += len(w.cmd.Request)
			default:
				return
			}
		}
	}
	take(p.urgent, entryCommands/2, entryBytes/2)
	take(p.queue, entryCommands, entryBytes)
	take(p.urgent, entryCommands, entryBytes)
	return batch
}

// submit makes an entry of commands and hands it to the loop. The slot is taken.
func (p *proposals) submit(batch []proposal) {
	f := &flight{proposals: p, commands: batch}
	if err := p.s.apply.failure(); err != nil {
		f.settle(stopped(p.s.number, err))
		return
	}
	now := p.s.standing()
	if !now.mine {
		f.settle(p.s.notLeader())
		return
	}
	cfg := &p.s.h.cfg
	f.term = now.term
	f.entry = &machine.Entry{At: cfg.Now(), Seed: cfg.Seed(), Epoch: now.term, Commands: make([]machine.Command, len(batch))}
	for i := range batch {
		f.entry.Commands[i] = batch[i].cmd
	}
	encoded, err := f.entry.Encode()
	if err != nil {
		f.settle(fault.New(fault.Validation, "unencodable", "the command cannot be encoded: %v; nothing happened", err))
		return
	}
	if !fits(encoded) {
		f.settle(fault.New(fault.ResourceExhausted, "entry_too_large", "the command is too large to be sent to the other nodes: %d bytes; nothing happened", len(encoded)))
		return
	}
	f.id = p.s.h.nextID()
	f.data = append(append(make([]byte, 0, len(f.id)+len(encoded)), f.id[:]...), encoded...)
	p.add(f)
	if !p.s.h.in.flight(f) {
		f.refused()
	}
}

// fits says whether an entry can be sent to another node.
func fits(encoded []byte) bool { return len(encoded) <= MessageBytes-messageRoom }

// close answers everything that is left, when the loop and apply have ended.
func (p *proposals) close() {
	<-p.done
	for _, f := range p.all() {
		f.settle(commitlog.Closed())
	}
	for {
		select {
		case w := <-p.urgent:
			w.answer(result{err: commitlog.Closed()})
		case w := <-p.queue:
			w.answer(result{err: commitlog.Closed()})
		default:
			close(p.closed)
			return
		}
	}
}

// flightID tells an entry from every other one: 8 random bytes of the process, and a
// count.
type flightID [16]byte

func idOf(b []byte) (id flightID) {
	copy(id[:], b)
	return id
}

// nextID makes the id of the next entry.
func (h *host) nextID() (id flightID) {
	binary.BigEndian.PutUint64(id[:], h.process)
	binary.BigEndian.PutUint64(id[8:], h.counted.Add(1))
	return id
}

// flights are the entries of a shard that are proposed and not settled.
type flights struct {
	mu   sync.Mutex
	byID map[flightID]*flight
}
