package membership

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/replica"
)

// deed is what a leader does to bring its shard nearer to the list.
type deed int

const (
	nothing deed = iota
	invite       // as a learner
	promote      // to a voter
	remove       // from the shard
	handOn       // the leadership, because it belongs elsewhere
	even         // the leadership, so that each node leads about as many
)

func (d deed) String() string {
	return [...]string{"nothing", "learner added", "made a voter", "removed", "leadership handed on", "leadership evened out"}[d]
}

// step is one deed.
type step struct {
	do   deed
	node uint64
}

// view is what the leader of a shard decides by.
type view struct {
	self    uint64
	shard   uint16
	list    *engine.Members
	members []replica.Member
	leads   map[uint64]int // shards, by node
	// unready are nodes that lead nothing well now: this one when its clock is not to
	// be trusted, others when they say so.
	unready map[uint64]bool
}

// next is the next step, the most urgent first: who is wanted comes in before
// anybody goes, so that a replacement never makes the majority smaller.
func (v *view) next(mayEven bool) step {
	for i := range v.list.All {
		if n := &v.list.All[i]; n.State == api.NodeJoined && find(v.members, n.NodeID) == nil {
			return step{invite, n.NodeID}
		}
	}
	for i := range v.members {
		// Before a node has told where it is it may ask for the identity once more, so it
		// must not have a vote that it could lose.
		if m := &v.members[i]; m.Learner && m.Active && !m.Snapshot && m.Match > 0 && v.wanted(m.Node) && v.node(m.Node).URL != "" {
			return step{promote, m.Node}
		}
	}
	if s := v.leave(); s.do != nothing {
		return s
	}
	return v.lead(mayEven)
}

// leave removes who is no longer wanted; the leader itself hands on first.
func (v *view) leave() step {
	for i := range v.members {
		m := &v.members[i]
		n := v.node(m.Node)
		if n == nil || n.State != api.NodeRemoved || !v.replaced(m.Node) {
			continue
		}
		if m.Node != v.self {
			return step{remove, m.Node}
		}
		if to := v.successor(); to != 0 {
			return step{handOn, to}
		}
	}
	return step{}
}

// replaced says that whoever was added in place of a node votes by now.
func (v *view) replaced(node uint64) bool {
	for i := range v.list.All {
		if n := &v.list.All[i]; n.Replaces == node && n.State != api.NodeRemoved {
			m := find(v.members, n.NodeID)
			return m != nil && !m.Learner
		}
	}
	return true
}

// lead hands the leadership to where it belongs.
func (v *view) lead(mayEven bool) step {
	self := v.node(v.self)
	if self == nil {
		return step{}
	}
	if self.Draining || v.unready[v.self] {
		if to := v.successor(); to != 0 {
			return step{handOn, to}
		}
		return step{}
	}
	if to, ok := v.list.Chosen[v.shard]; ok {
		if to != v.self && v.fit(to) {
			return step{handOn, to}
		}
		if to == v.self || v.fit(to) {
			return step{}
		}
	}
	if to := v.successor(); mayEven && to != 0 && v.leads[v.self] >= v.leads[to]+2 {
		return step{even, to}
	}
	return step{}
}

// successor is the fit node that leads least; 0 is none.
func (v *view) successor() (best uint64) {
	for i := range v.members {
		n := v.members[i].Node
		if n != v.self && v.fit(n) && (best == 0 || v.leads[n] < v.leads[best]) {
			best = n
		}
	}
	return best
}

// fit says that a node can lead the shard at once.
func (v *view) fit(node uint64) bool {
	m, n := find(v.members, node), v.node(node)
	return m != nil && !m.Learner && m.Active && !m.Snapshot && m.Lacks <= fitLacks && v.wanted(node) && !n.Draining && !v.unready[node]
}

// fitLacks is how many entries a node may lack that is given a leadership: more would
// make callers wait.
const fitLacks = 64

func (v *view) wanted(node uint64) bool {
	n := v.node(node)
	return n != nil && n.State == api.NodeJoined
}

func (v *view) node(id uint64) *api.ClusterNode {
	for i := range v.list.All {
		if v.list.All[i].NodeID == id {
			return &v.list.All[i]
		}
	}
	return nil
}

func find(ms []replica.Member, node uint64) *replica.Member {
	for i := range ms {
		if ms[i].Node == node {
			return &ms[i]
		}
	}
	return nil
}
