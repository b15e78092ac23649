package replica

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/keyload/keyload/internal/replica/journal"
)

const (
	messageBytes     = 1 << 20 // of the entries of one append, but for the last of them
	applyingBytes    = 4 << 20 // of entries handed to be applied and not applied yet
	uncommittedBytes = 64 << 20
	inflightBytes    = 64 << 20
	inflightMessages = 256
)

// group is one shard's raft group. It belongs to the loop.
type group struct {
	l       *loop
	s       *shard
	log     *journal.Shard
	node    *raft.RawNode
	dead    error    // it takes part in nothing any more
	applied position // the last entry known to be applied

	roster    roster
	changes   memberChanges
	moves     moves
	rounds    rounds
	sender    sender
	installer installer
}

// position is an entry's place in a replicated log.
type position struct{ index, term uint64 }

// idle says that the group must not be driven: it has stopped, or a snapshot is being
// installed, before whose end nothing may be written or said.
func (g *group) idle() bool { return g.dead != nil || g.installer.held != nil }

func (g *group) leads() bool { return g.node.BasicStatus().RaftState == raft.StateLeader }

func (g *group) tick() {
	if !g.idle() {
		g.node.Tick()
	}
	g.rounds.age()
	g.moves.age()
	g.s.proposals.expire(g.l.ticks)
}

// step takes a message of another node.
func (g *group) step(m *pb.Message) {
	g.roster.heard[m.GetFrom()] = g.l.ticks
	if g.idle() {
		return
	}
	if m.GetType() == pb.MsgReadIndex && g.leads() && !g.here() {
		// A leader that is the only voter would answer from before its own election. The
		// node that asked asks again.
		return
	}
	if err := g.node.Step(m); err != nil {
		g.l.h.cfg.Logger.Debug("a message was dropped", "shard", g.s.number, "type", m.GetType().String(), "error", err.Error())
	}
}

// here says that this node leads, and has applied an entry of its term.
func (g *group) here() bool {
	st := g.node.BasicStatus()
	return g.dead == nil && st.RaftState == raft.StateLeader && g.applied.term == st.GetTerm()
}

// propose hands an entry to raft, or answers that nothing happened.
func (g *group) propose(f *flight) {
	st := g.node.BasicStatus()
	if g.idle() || st.RaftState != raft.StateLeader || st.GetTerm() != f.term || g.l.h.life.Err() != nil {
		f.refused()
		return
	}
	if err := g.node.Propose(f.data); err != nil {
		f.refused()
	}
}

// publish tells the other goroutines who leads.
func (g *group) publish() {
	old := g.s.standing()
	now := &standing{here: g.here()}
	if st := g.node.BasicStatus(); g.dead == nil {
		now.leader, now.term, now.mine = st.Lead, st.GetTerm(), st.RaftState == raft.StateLeader
	}
	if *now == *old {
		return
	}
	g.s.stands.Store(now)
	if old.mine && (!now.mine || now.term != old.term) {
		g.s.proposals.doubt(g.l.ticks + doubtTicks)
	}
	if now.here && (!old.here || now.term != old.term) {
		g.s.tellDue()
		g.l.h.in.call(func(*loop) {}) // readers may have waited for this
		if led := g.l.h.cfg.Led; led != nil {
			led(g.s.number, now.term)
		}
	}
}

// stop ends the part of this node in a group. Nothing is sent for it any more, so
// another node comes to lead.
func (g *group) stop(err error) {
	if g.dead != nil {
		return
	}
	g.dead = err
	g.s.apply.fail(err)
	said := stopped(g.s.number, err)
	g.rounds.fail(said)
	g.changes.fail(said)
	g.moves.fail(said)
	g.publish()
	g.s.proposals.abandon()
}

// hand gives committed entries to be applied. Changes of the members take effect in
// raft now; the state learns of them with their entry.
func (g *group) hand(m *pb.Message) {
	w := &work{responses: m.GetResponses(), entries: m.GetEntries()}
	for _, e := range m.GetEntries() {
		if e.GetType() == pb.EntryNormal {
			continue
		}
		cc := new(pb.ConfChange)
		if err := proto.Unmarshal(e.GetData(), cc); err != nil {
			panic("a change of members cannot be read: " + err.Error())
		}
		g.roster.members, g.roster.changed = g.node.ApplyConfChange(cc), e.GetIndex()
		w.members = append(w.members, g.roster.members)
		w.changes = append(w.changes, idOf(cc.GetContext()))
	}
	g.s.apply.put(w)
}

// handled takes note of what was applied.
func (g *group) handled(w *work, last position) {
	g.applied = last
	if !g.idle() {
		for _, r := range w.responses {
			g.node.Step(r)
		}
	}
	for _, id := range w.changes {
		g.changes.finish(id, nil)
	}
}
