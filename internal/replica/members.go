package replica

import (
	"context"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/keyload/keyload/fault"
)

// caughtUp is how many entries a learner may lack of the leader's to be made a voter.
const caughtUp = 128

// activeTicks is how long after its last message a node counts as active.
const activeTicks = 2 * electionTicks

// Member is a node that holds a shard, as its leader sees it.
type Member struct {
	Node    uint64
	Learner bool
	// Match is the last entry known to be in its journal, Lacks how many the leader has
	// beyond that. Both are 0 where the node that answers does not lead.
	Match, Lacks uint64
	// Active says that it was heard from within the last second or so. Snapshot says
	// that it is being sent one.
	Active, Snapshot bool
}

// Progress is who holds a shard and how far they are.
type Progress struct {
	Leader  uint64 // 0 when none is known
	Here    bool   // this node leads
	Members []Member
}

// roster is what a group knows of its members.
type roster struct {
	g       *group
	members *pb.ConfState     // after every change that was handed to be applied
	changed uint64            // index of the last of those
	heard   map[uint64]uint64 // the tick of the last message of a node
}

// memberChanges are the changes of members on their way that were asked for here.
type memberChanges struct {
	g    *group
	open map[flightID]*change
}

// change is one of them.
type change struct {
	done  chan error
	index uint64 // 0 before raft has taken it
	term  uint64
	since uint64 // tick
}

// AddLearner lets a node get the log of a shard without a vote; one that is there
// already stays as it is. Only the leader can do it, and one change at a time:
// OwnershipLost, Conflict (reason change_under_way). UnknownWriteOutcome: repeat it.
func (l *Log) AddLearner(ctx context.Context, shard uint16, node uint64) error {
	return l.change(ctx, shard, func(g *group) (pb.ConfChangeType, bool, error) {
		_, _, found := g.roster.progress(node)
		return pb.ConfChangeAddLearnerNode, found, nil
	}, node)
}

// Promote gives a learner a vote, once it lacks next to nothing: Conflict (reason
// not_caught_up, no_member) before that.
func (l *Log) Promote(ctx context.Context, shard uint16, node uint64) error {
	return l.change(ctx, shard, func(g *group) (pb.ConfChangeType, bool, error) {
		m, state, found := g.roster.progress(node)
		switch {
		case !found:
			return 0, false, fault.New(fault.Conflict, "no_member", "node %d is no learner of shard %d; nothing happened", node, g.s.number)
		case !m.Learner:
			return 0, true, nil
		case !m.Active || state != replicating || m.Lacks > caughtUp:
			return 0, false, fault.New(fault.Conflict, "not_caught_up", "node %d lacks %d entries of shard %d, and may lack %d to get a vote; nothing happened, ask again later",
				node, m.Lacks, g.s.number, caughtUp)
		}
		return pb.ConfChangeAddNode, false, nil
	}, node)
}

// Remove takes a node out of a shard for good; one that is not there is removed
// already. It is refused where the nodes that stay, and are active, would be no
// majority, and for the leader itself: Conflict (reason majority, leads).
func (l *Log) Remove(ctx context.Context, shard uint16, node uint64) error {
	return l.change(ctx, shard, func(g *group) (pb.ConfChangeType, bool, error) {
		m, _, found := g.roster.progress(node)
		if !found {
			return 0, true, nil
		}
		if node == g.l.h.cfg.Node {
			return 0, false, fault.New(fault.Conflict, "leads", "node %d leads shard %d; let another one lead it first. Nothing happened", node, g.s.number)
		}
		if voters, active := g.roster.without(node); !m.Learner && active < voters/2+1 {
			return 0, false, fault.New(fault.Conflict, "majority",
				"without node %d shard %d would have %d voters, of which %d are active: no majority. Nothing happened", node, g.s.number, voters, active)
		}
		return pb.ConfChangeRemoveNode, false, nil
	}, node)
}

const replicating = "replicating"

// progress is how a node stands, as the leader sees it.
func (r *roster) progress(node uint64) (m Member, state string, found bool) {
	for _, m := range r.seen() {
		if m.Node == node {
			state := "behind"
			if !m.Snapshot && m.Match > 0 {
				state = replicating
			}
			return m, state, true
		}
	}
	return m, "", false
}

// seen are the members of the shard.
func (r *roster) seen() (out []Member) {
	g := r.g
	if g.dead != nil {
		return nil
	}
	leads := g.leads()
	last, _ := g.log.LastIndex()
	st := g.node.Status()
	add := func(ids []uint64, learner bool) {
		for _, id := range ids {
			m := Member{Node: id, Learner: learner, Active: id == g.l.h.cfg.Node || r.heardOf(id)}
			if pr, ok := st.Progress[id]; ok && leads {
				m.Match, m.Snapshot = pr.Match, pr.PendingSnapshot != 0
				m.Lacks = last - min(last, pr.Match)
			}
			out = append(out, m)
		}
	}
	add(r.members.GetVoters(), false)
	add(r.members.GetLearners(), true)
	return out
}

func (r *roster) heardOf(node uint64) bool {
	tick, ok := r.heard[node]
	return ok && r.g.l.ticks-tick <= activeTicks
}

// without counts the voters that would be left, and those of them that are active.
func (r *roster) without(node uint64) (voters, active int) {
	for _, m := range r.seen() {
		if m.Learner || m.Node == node {
			continue
		}
		voters++
		if m.Active {
			active++
		}
	}
	return voters, active
}

// change proposes a change of members on the loop, unless it is made already, and
// waits until it is applied here.
func (l *Log) change(ctx context.Context, shard uint16, plan func(*group) (kind pb.ConfChangeType, made bool, err error), node uint64) error {
	s := l.shards[shard]
	if err := s.apply.readable(); err != nil {
		return err
	}
	c := &change{done: make(chan error, 1)}
	ok := l.host.in.call(func(*loop) {
		g := s.group
		if g.idle() || !g.here() {
			c.done <- s.notLeader()
			return
		}
		kind, made, err := plan(g)
		if err != nil || made {
			c.done <- err
			return
		}
		g.changes.propose(c, kind, node)
	})
	if !ok {
		return closing()
	}
	select {
	case err := <-c.done:
		return err
	case <-l.host.life.Done():
		return closing()
	case <-ctx.Done():
		return fault.New(fault.UnknownWriteOutcome, "caller_left", "the caller stopped waiting for a change of the members of shard %d, which may still be made; repeat it", shard)
	}
}

func (cs *memberChanges) propose(c *change, kind pb.ConfChangeType, node uint64) {
	g := cs.g
	id := g.l.h.nextID()
	c.since, c.term = g.l.ticks, g.node.BasicStatus().GetTerm()
	cs.open[id] = c
	err := g.node.ProposeConfChange(&pb.ConfChange{Type: kind.Enum(), NodeId: new(node), Context: id[:]})
	if err != nil {
		cs.finish(id, g.s.notLeader())
	}
}

// placed notes the index that raft gave a change.
func (cs *memberChanges) placed(e *pb.Entry) {
	cc := new(pb.ConfChange)
	if proto.Unmarshal(e.GetData(), cc) != nil {
		return
	}
	if c := cs.open[idOf(cc.GetContext())]; c != nil && c.term == e.GetTerm() {
		c.index = e.GetIndex()
	}
}

func (cs *memberChanges) finish(id flightID, err error) {
	if c := cs.open[id]; c != nil {
		delete(cs.open, id)
		c.done <- err
	}
}

// settle answers those that raft has not taken, and those whose fate stays
// open.
func (cs *memberChanges) settle() {
	for id, c := range cs.open {
		switch {
		case c.index == 0:
			cs.finish(id, fault.New(fault.Conflict, "change_under_way",
				"another change of the members of shard %d is under way, or the lead has just changed; nothing happened, ask again", cs.g.s.number))
		case cs.g.l.ticks-c.since > doubtTicks:
			cs.finish(id, unknownChange(cs.g.s.number))
		}
	}
}

func unknownChange(shard uint16) error {
	return fault.New(fault.UnknownWriteOutcome, "leader_lost", "the change of the members of shard %d is not made yet, and may still be; look at them, and repeat it", shard)
}

func (cs *memberChanges) fail(err error) {
	for id := range cs.open {
		cs.finish(id, err)
	}
}

// Progress tells who holds a shard, and on its leader how far they are.
func (l *Log) Progress(ctx context.Context, shard uint16) (Progress, error) {
	s := l.shards[shard]
	got := make(chan Progress, 1)
	if !l.host.in.call(func(*loop) {
		now := s.standing()
		got <- Progress{now.leader, now.here, s.group.roster.seen()}
	}) {
		return Progress{}, closing()
	}
	select {
	case p := <-got:
		return p, nil
	case <-l.host.life.Done():
		return Progress{}, closing()
	case <-ctx.Done():
		return Progress{}, fault.New(fault.Cancelled, "cancelled", "the caller went away while waiting for the members of shard %d", shard)
	}
}
