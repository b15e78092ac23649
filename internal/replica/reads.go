package replica

import (
	"context"
	"encoding/binary"
	"sync"

	"go.etcd.io/raft/v3"

	"github.com/keyload/keyload/fault"
)

const (
	// roundTicks is after how long an unanswered round is asked again: a request is
	// lost with a message, or with a leader. readTicks is when its readers are told.
	roundTicks = electionTicks / 2
	readTicks  = 3 * electionTicks
	// roundsInFlight bounds the rounds of a shard that wait for an answer; more readers
	// join the next one.
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
	result chan readResult
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
}

// round is one question to the leader, for all who waited when it was asked.
type round struct {
	readers []*reader
	asked   uint64 // tick
}

// start asks for those who wait. Each round has a number of its own, so that no
// answer to an earlier question is taken for one to a later.
func (rs *rounds) start() {
	g := rs.g
	if g.dead != nil {
		rs.fail(stopped(g.s.number, g.dead))
		return
	}
	if g.idle() || len(rs.open) >= roundsInFlight || g.leads() && !g.here() {
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
	rs.open[binary.BigEndian.Uint64(id[8:])] = &round{readers, g.l.ticks}
	g.node.ReadIndex(id[:])
}

// confirm tells the readers of a round.
func (rs *rounds) confirm(r raft.ReadState) {
	if len(r.RequestCtx) != len(flightID{}) || binary.BigEndian.Uint64(r.RequestCtx) != rs.g.l.h.process {
		return
	}
	id := binary.BigEndian.Uint64(r.RequestCtx[8:])
	if found := rs.open[id]; found != nil {
		delete(rs.open, id)
		for _, w := range found.readers {
			w.result <- readResult{index: r.Index}
		}
	}
}

// age asks again what was not answered, and gives up on readers who waited for
// too long.
func (rs *rounds) age() {
	g := rs.g
	var again []*reader
	for id, r := range rs.open {
		if g.l.ticks-r.asked >= roundTicks {
			delete(rs.open, id)
			again = append(again, r.readers...)
		}
	}
	var left []*reader
	for _, w := range append(again, g.s.reads.take()...) {
		if w.since == 0 {
			w.since = g.l.ticks + 1
		}
		if g.l.ticks-(w.since-1) >= readTicks {
			w.result <- readResult{err: fault.New(fault.OwnershipLost, "unconfirmed",
				"no leader of shard %d confirmed in time that the state is recent. Nothing happened; ask again, or another node", g.s.number)}
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
		delete(rs.open, id)
		for _, w := range r.readers {
			w.result <- readResult{err: err}
		}
	}
	for _, w := range rs.g.s.reads.take() {
		w.result <- readResult{err: err}
	}
}
