package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
)

// A picture is what all nodes that answered say together.
type picture struct {
	asked  uint64
	nodes  []api.ClusterNodeStatus
	shards []uint32                          // in order
	copies map[uint32][]nodeCopy             // of each shard, in the order of nodes
	led    map[uint32]*api.ClusterReplica    // by the newest term that has a leader
	ahead  map[uint32]uint64                 // the last position that any copy has applied
	by     map[uint64]*api.ClusterNodeStatus // nodes by id
}

// nodeCopy is what a node says of its copy of a shard.
type nodeCopy struct {
	node uint64
	*api.ClusterReplica
}

func pictureOf(r *api.ClusterStatusResponse) *picture {
	p := &picture{
		asked: r.Node, nodes: r.Nodes, copies: map[uint32][]nodeCopy{}, led: map[uint32]*api.ClusterReplica{},
		ahead: map[uint32]uint64{}, by: map[uint64]*api.ClusterNodeStatus{},
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		p.by[n.Node.NodeID] = n
		for j := range n.Replicas {
			c := &n.Replicas[j]
			p.copies[c.Shard] = append(p.copies[c.Shard], nodeCopy{n.Node.NodeID, c})
			p.ahead[c.Shard] = max(p.ahead[c.Shard], c.Position)
			if best := p.led[c.Shard]; c.Leader != 0 && (best == nil || c.Term > best.Term) {
				p.led[c.Shard] = c
			}
		}
	}
	p.shards = slices.Sorted(maps.Keys(p.copies))
	return p
}

// leader is the node that leads a shard, 0 when none is known.
func (p *picture) leader(shard uint32) uint64 {
	if c := p.led[shard]; c != nil {
		return c.Leader
	}
	return 0
}

// leads are the shards that a node leads, and those that nobody does.
func (p *picture) leads(node uint64) (own, nobody int) {
	for _, shard := range p.shards {
		switch p.leader(shard) {
		case node:
			own++
		case 0:
			nobody++
		}
	}
	return own, nobody
}

// votes are the shards in which a node votes.
func (p *picture) votes(node uint64) (n int) {
	for _, shard := range p.shards {
		for _, c := range p.copies[shard] {
			if c.node == node && c.Member && !c.Learner {
				n++
			}
		}
	}
	return n
}

// lag is how many commands a node is behind in the shard where it is so most.
func (p *picture) lag(n *api.ClusterNodeStatus) (most uint64) {
	for _, c := range n.Replicas {
		most = max(most, p.ahead[c.Shard]-c.Position)
	}
	return most
}

// others says that another node than this one may lead now.
func (p *picture) others(node uint64) bool {
	return slices.ContainsFunc(p.nodes, func(n api.ClusterNodeStatus) bool {
		return n.Node.NodeID != node && n.Node.State == api.NodeJoined && n.Reachable && !n.Node.Draining
	})
}

// attention is what a person should know or do, a line each.
func (p *picture) attention() (out []string) {
	for i := range p.nodes {
		out = append(out, p.ofNode(&p.nodes[i])...)
	}
	if up, must, lost := p.majority(); lost {
		out = append(out, fmt.Sprintf("NO MAJORITY: of the nodes that vote %d can be reached, and %d must be; until then nothing is read or written. Start those that are down, with their disks", up, must))
	}
	return append(out, p.ofShards()...)
}

// majority counts the nodes that are reached and those that must be, as far as the list
// of members tells; it is lost when no shard is led by one that is reached, either: a
// node that does not vote yet is not missed.
func (p *picture) majority() (up, must int, lost bool) {
	voters := 0
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.Node.State != api.NodeJoined {
			continue
		}
		if voters++; n.Reachable {
			up++
		}
	}
	led := slices.ContainsFunc(p.shards, func(shard uint32) bool {
		n := p.by[p.leader(shard)]
		return n != nil && n.Reachable
	})
	return up, voters/2 + 1, up < voters/2+1 && !led
}

// ofShards is what is wrong with the shards, a line each.
func (p *picture) ofShards() (out []string) {
	var headless []string
	for _, shard := range p.shards {
		if p.leader(shard) == 0 {
			headless = append(headless, fmt.Sprint(shard))
		}
		for _, c := range p.copies[shard] {
			if c.Failure != "" {
				out = append(out, fmt.Sprintf("shard %d on node %d has stopped: %s", shard, c.node, c.Failure))
			}
		}
		out = append(out, p.differing(shard)...)
	}
	if len(headless) > 0 {
		out = append(out, "nobody leads shard "+strings.Join(headless, ", ")+": a majority of its members must be up and reach each other")
	}
	return out
}

func (p *picture) ofNode(n *api.ClusterNodeStatus) (out []string) {
	id := n.Node.NodeID
	say := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("node %d ", id)+fmt.Sprintf(format, args...))
	}
	switch {
	case n.Node.State == api.NodeInvited:
		say("was invited and has not joined: start it")
		return out
	case n.Node.State == api.NodeRemoved:
		say("is removed and on its way out")
		return out
	case !n.Reachable:
		if _, _, lost := p.majority(); lost { // without one the list does not change
			say("cannot be reached (%s)", orUnknown(n.Reason))
			return out
		}
		say("cannot be reached (%s). If it is lost for good, put a new one in its place: keyload cluster replace %d NEW ADDRESS", orUnknown(n.Reason), id)
		return out
	case !n.Ready:
		say("takes no work: %s", orUnknown(n.Reason))
	}
	if ms := n.SkewMillis; ms >= limits.ClockBehindMillis || ms <= -limits.ClockBehindMillis {
		say("has a clock that is %+d ms off that of node %d: have one of them set right", ms, p.asked)
	}
	if own, nobody := p.leads(id); n.Node.Draining && own == 0 && nobody == 0 {
		say("leads nothing and can be stopped; when it is back: keyload cluster drain %d --off", id)
	} else if n.Node.Draining && !p.others(id) {
		say("is draining, and no other node can lead now")
	}
	return out
}

func orUnknown(reason string) string {
	if reason == "" {
		return "no reason is known"
	}
	return reason
}

// differing are the copies of a shard that stand at one position and are not equal.
func (p *picture) differing(shard uint32) (out []string) {
	first := map[uint64]nodeCopy{}
	for _, c := range p.copies[shard] {
		if other, ok := first[c.Position]; !ok {
			first[c.Position] = c
		} else if other.Digest != c.Digest {
			out = append(out, fmt.Sprintf("DIFFERENT: shard %d is not the same on node %d and node %d at position %d; keep both directories, and check each of them (keyload check DIR)",
				shard, other.node, c.node, c.Position))
		}
	}
	return out
}
