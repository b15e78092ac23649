package replica

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/keyload/keyload/internal/replica/journal"
)

// saving is what a group writes in a turn, and what may be said after it.
type saving struct {
	g *group
	m *pb.Message
}

// ready takes what raft wants done. Messages that promise nothing go out now, a
// leader's appends among them, while this node's own sync is still to come; the
// others are what saving holds.
func (g *group) ready(turn *journal.Turn) (s *saving) {
	rd := g.node.Ready()
	for _, r := range rd.ReadStates {
		g.rounds.confirm(r)
	}
	for _, m := range rd.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			s = &saving{g, m}
			g.save(turn, s)
		case raft.LocalApplyThread:
			g.hand(m)
		default:
			g.send(m)
		}
	}
	return s
}

func (g *group) save(turn *journal.Turn, s *saving) {
	m := s.m
	if m.Term != nil { // term, vote and commit come together
		turn.SetState(g.s.number, &pb.HardState{Term: m.Term, Vote: new(m.GetVote()), Commit: new(m.GetCommit())})
	}
	if !raft.IsEmptySnap(m.GetSnapshot()) {
		g.installer.begin(turn, s)
		return
	}
	turn.Append(g.s.number, m.GetEntries())
	if !g.leads() {
		return
	}
	for _, e := range m.GetEntries() { // which index did each of ours get?
		if e.GetType() == pb.EntryNormal {
			g.s.proposals.placed(e)
		} else {
			g.changes.placed(e)
		}
	}
}

// saved goes on when the turn is on disk.
func (s *saving) saved() {
	if s == s.g.installer.held {
		s.install()
		return
	}
	s.respond()
}

// respond says what could not be said before.
func (s *saving) respond() {
	for _, r := range s.m.GetResponses() {
		if r.GetTo() == s.g.l.h.cfg.Node {
			s.g.node.Step(r)
		} else {
			s.g.send(r)
		}
	}
}

func (g *group) send(m *pb.Message) {
	if m.GetType() == pb.MsgSnap {
		g.sender.send(m)
		return
	}
	b, err := encodeMessage(m)
	if err != nil {
		panic("a message of raft has no encoding: " + err.Error())
	}
	g.l.h.cfg.Transport.Send(m.GetTo(), g.s.number, b)
}
