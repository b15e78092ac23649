package replica

import (
	"context"

	"github.com/keyload/keyload/fault"
)

// moveTicks is how long a transfer of the lead is tried.
const moveTicks = 4 * electionTicks

// moves are the transfers of the lead that were asked for here.
type moves struct {
	g    *group
	open []*move
}

// move is a transfer of the lead on its way.
type move struct {
	to    uint64
	since uint64
	done  chan error
}

// Transfer lets another voter lead a shard. It returns once this node knows of it as
// the leader; OwnershipLost where it did not come to that, Conflict (reason no_voter)
// for a node without a vote.
func (l *Log) Transfer(ctx context.Context, shard uint16, node uint64) error {
	s := l.shards[shard]
	if err := s.apply.readable(); err != nil {
		return err
	}
	m := &move{to: node, done: make(chan error, 1)}
	ok := l.host.in.call(func(*loop) { s.group.moves.begin(m) })
	if !ok {
		return closing()
	}
	select {
	case err := <-m.done:
		return err
	case <-l.host.life.Done():
		return closing()
	case <-ctx.Done():
		return fault.New(fault.UnknownWriteOutcome, "caller_left", "the caller stopped waiting for node %d to lead shard %d; it may still come to that", node, shard)
	}
}

func (ms *moves) begin(m *move) {
	g := ms.g
	who, _, found := Member{}, "", false
	if !g.idle() && g.leads() {
		who, _, found = g.roster.progress(m.to)
	}
	switch {
	case g.idle() || !g.leads():
		m.done <- g.s.notLeader()
	case m.to == g.l.h.cfg.Node:
		m.done <- nil
	case !found || who.Learner:
		m.done <- fault.New(fault.Conflict, "no_voter", "node %d has no vote in shard %d, so it cannot lead it; nothing happened", m.to, g.s.number)
	default:
		m.since = g.l.ticks
		ms.open = append(ms.open, m)
		g.node.TransferLeader(m.to)
	}
}

// age answers who waits for a transfer.
func (ms *moves) age() {
	g := ms.g
	var left []*move
	for _, m := range ms.open {
		switch {
		case g.dead == nil && g.node.BasicStatus().Lead == m.to:
			m.done <- nil
		case g.l.ticks-m.since > moveTicks:
			m.done <- fault.New(fault.OwnershipLost, "not_transferred", "node %d has not come to lead shard %d in time; look who does, and ask again", m.to, g.s.number)
		default:
			// The other node may not have been ready: it must have applied every change of
			// members before it may stand for election.
			if !g.idle() && g.leads() && g.l.ticks-m.since > 0 && (g.l.ticks-m.since)%electionTicks == 0 {
				g.node.TransferLeader(m.to)
			}
			left = append(left, m)
		}
	}
	ms.open = left
}

func (ms *moves) fail(err error) {
	for _, m := range ms.open {
		m.done <- err
	}
	ms.open = nil
}
