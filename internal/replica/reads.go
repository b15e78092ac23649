package replica

import (
	"context"
	"encoding/binary"
	"sync"

	"go.etcd.io/raft/v3"

	"github.com/keyload/keyload/fault"
)

const (
	// roundTicks is after how long the readers of an unanswered round ask in another one
	// too: a request is lost with a message, or with a leader, or the way is long.
	// readTicks is when readers are told, and rounds forgotten.
	roundTicks = electionTicks / 2
	readTicks  = 3 * electionTicks
	// roundsInFlight bounds the rounds of a shard that wait for an answer and were not
	// asked again; more readers join the next one.
	roundsInFlight = 16
)

// reads are those who wait to learn how recent a state must be.
type reads struct {
	s       *shard
	mu      sync.Mutex
	waiting []*reader
}

type reader struct {
	since  uint64 // the tick at which the loop saw it first; the loop's
	told   bool   // the loop's
	result chan readResult
}

// tell tells a reader what the first of its rounds has come to.
func (w *reader) tell(r readResult) {
	if !w.told {
		w.told = true
		w.result <- r
	}
}

type readResult struct {
	index uint64
	err   error
}

// barrier is the index of an entry that a state must hold to show everything that was
// acknowledged before.
func (r *reads) barrier(ctx context.Context) (uint64, error) {
	if err := r.s.apply.readable(); err != nil {
		return 0, err
	}
	w := &reader{result: make(chan readResult, 1)}
	r.mu.Lock()
	first := len(r.waiting) == 0
	r.waiting = append(r.waiting, w)
	r.mu.Unlock()
	if first && !r.s.h.in.call(func(*loop) {}) {
		return 0, closing()
	}
	select {
	case got := <-w.result:
		return got.index, got.err
	case <-r.s.h.life.Done():
		return 0, closing()
	case <-ctx.Done():
		return 0, fault.New(fault.Cancelled, "cancelled", "the caller went away while waiting to learn how recent the state is")
	}
}

func (r *reads) take() []*reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.waiting
	r.waiting = nil
	return out
}

func (r *reads) putBack(ws []*reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(ws, r.waiting...)
}

// rounds are the questions of a group that are not answered.
type rounds struct {
	g    *group
	open map[uint64]*round
	late int // of those, which were asked again
}

// round is one question to the leader, for all who waited when it was asked.
type round struct {
	readers []*reader
	asked   uint64 // tick
	late    bool   // its readers ask in another one too
}

// start asks for those who wait. Each round has a number of its own, so that no
// answer to an earlier question is taken for one to a later.
func (rs *rounds) start() {
	g := rs.g
	if g.dead != nil {
		rs.fail(stopped(g.s.number, g.dead))
		return
	}
	if g.idle() || len(rs.open)-rs.late >= roundsInFlight || g.leads() && !g.here() {
		return // they wait
	}
	readers := g.s.reads.take()
	if len(readers) == 0 {
		return
	}
	for _, w := range readers {
		if w.since == 0 {
			w.since = g.l.ticks + 1
		}
	}
	id := g.l.h.nextID()
	rs.open[binary.BigEndian.Uint64(id[8:])] = &round{readers: readers, asked: g.l.ticks}
	g.node.ReadIndex(id[:])
}

// confirm tells the readers of a round.
func (rs *rounds) confirm(r raft.ReadState) {
	if len(r.RequestCtx) != len(flightID{}) || binary.BigEndian.Uint64(r.RequestCtx) != rs.g.l.h.process {
		return
	}
	id := binary.BigEndian.Uint64(r.RequestCtx[8:])
	if found := rs.open[id]; found != nil {
		rs.forget(id, found)
		for _, w := range found.readers {
			w.tell(readResult{index: r.Index})
		}
	}
}

func (rs *rounds) forget(id uint64, r *round) {
	delete(rs.open, id)
	if r.late {
		rs.late--
	}
}

// age asks again what was not answered, and gives up on readers who waited for
// too long.
func (rs *rounds) age() {
	g := rs.g
	var again []*reader
	for id, r := range rs.open {
		switch age := g.l.ticks - r.asked; {
		case age >= readTicks:
			rs.forget(id, r)
		case age >= roundTicks && !r.late:
			r.late = true
			rs.late++
			again = append(again, r.readers...)
		}
	}
	var left []*reader
	for _, w := range append(again, g.s.reads.take()...) {
		if w.told {
			continue
		}
		if w.since == 0 {
			w.since = g.l.ticks + 1
		}
		if g.l.ticks-(w.since-1) >= readTicks {
			w.tell(readResult{err: fault.New(fault.OwnershipLost, "unconfirmed",
				"no leader of shard %d confirmed in time that the state is recent. Nothing happened; ask again, or another node", g.s.number)})
			continue
		}
		left = append(left, w)
	}
	if len(left) > 0 {
		g.s.reads.putBack(left)
	}
}

func (rs *rounds) fail(err error) {
	for id, r := range rs.open {
		rs.forget(id, r)
		for _, w := range r.readers {
			w.tell(readResult{err: err})
		}
	}
	for _, w := range rs.g.s.reads.take() {
		w.tell(readResult{err: err})
	}
}
