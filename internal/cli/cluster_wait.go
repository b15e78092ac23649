package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

const (
	// askAgain is how often a command that waits asks for the state of the cluster.
	askAgain = 500 * time.Millisecond
	// unanswered is how long it goes on asking a node that does not answer.
	unanswered = 30 * time.Second
)

// waits says that the command may wait: until its change has taken effect, or, to see
// the state, until nothing is missing.
func (o *operation) waits() bool {
	switch o.op.Name {
	case api.ClusterStatus.Name, api.ClusterAdd.Name, api.ClusterRemove.Name, api.ClusterReplace.Name, api.ClusterDrain.Name, api.ClusterTransfer.Name:
		return true
	}
	return false
}

// waitHelp says what is waited for.
func (o *operation) waitHelp() string {
	if o.op.Name == api.ClusterStatus.Name {
		return "return when every node takes work and votes in every shard, and every shard has a leader"
	}
	return "return when the change has taken effect on every node"
}

// goesOn says what becomes of that which is no longer waited for.
func goesOn(request any) string {
	if _, ok := request.(*api.ClusterStatusRequest); ok {
		return "the cluster is not whole, as far as this node knows; see: keyload cluster status"
	}
	return "the change is stored and goes on by itself; see: keyload cluster status"
}

// follow asks for the state of the cluster until what was requested has taken effect
// everywhere. It tells each step once. Errors: UnsupportedCapability (reason no_cluster)
// where the store runs alone; those of cluster.status.
func follow(s *session, request any) error {
	var said string
	answered := time.Now()
	for {
		status, err := call(s, api.ClusterStatus, &api.ClusterStatusRequest{})
		text, done := "", false
		switch {
		case err == nil && len(status.Nodes) == 0:
			return fault.New(fault.UnsupportedCapability, "no_cluster", "this store runs alone, so there is nothing to wait for").
				WithRetry(fault.RetryAfterChange)
		case err == nil:
			answered = time.Now()
			text, done = pictureOf(status).effect(request)
		case s.ctx.Err() != nil || final(err) || time.Since(answered) > unanswered:
			tell(s, goesOn(request))
			return err
		default:
			text = "the node that is asked does not answer: " + err.Error()
		}
		if text != said {
			said = text
			tell(s, text)
		}
		if done {
			return nil
		}
		if !pause(s.ctx, askAgain) {
			tell(s, goesOn(request))
			return s.ctx.Err()
		}
	}
}

// final says that asking again answers no better.
func final(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unauthenticated, fault.PermissionDenied, fault.Validation, fault.NotFound, fault.UnsupportedCapability:
		return true
	}
	return fault.From(err) == nil
}

// tell writes a line for people beside the answer.
func tell(s *session, text string) {
	if !s.JSON {
		fmt.Fprintln(s.streams.Err, s.name.in(text))
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// effect says how far what was requested has taken effect.
func (p *picture) effect(request any) (text string, done bool) {
	switch r := request.(type) {
	case *api.ClusterStatusRequest:
		return p.whole()
	case *api.ClusterAddRequest:
		return p.arrived(r.NodeID)
	case *api.ClusterRemoveRequest:
		return p.gone(r.NodeID)
	case *api.ClusterReplaceRequest:
		if text, done = p.arrived(r.By); !done {
			return text, false
		}
		return p.gone(r.NodeID)
	case *api.ClusterDrainRequest:
		if !r.Draining {
			return fmt.Sprintf("node %d may lead again", r.NodeID), true
		}
		return p.idle(r.NodeID)
	case *api.ClusterTransferRequest:
		at := p.leader(uint32(r.Shard))
		if r.NodeID == 0 {
			return fmt.Sprintf("any node may lead shard %d", r.Shard), true
		}
		return fmt.Sprintf("shard %d: led by %s", r.Shard, nodeOrNobody(at)), at == r.NodeID
	}
	return "", true
}

func nodeOrNobody(id uint64) string {
	if id == 0 {
		return "nobody"
	}
	return fmt.Sprint("node ", id)
}

// whole: nothing is missing. A node that is draining is as it should be.
func (p *picture) whole() (string, bool) {
	if up, must, lost := p.majority(); lost {
		return fmt.Sprintf("no majority: of the nodes that vote %d can be reached, and %d must be", up, must), false
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		id, votes := n.Node.NodeID, p.votes(n.Node.NodeID)
		switch {
		case n.Node.State == api.NodeRemoved:
			return p.gone(id)
		case n.Node.State == api.NodeInvited, !n.Reachable, votes < len(p.shards):
			text, _ := p.arrived(id)
			return text, false
		case !n.Ready:
			return fmt.Sprintf("node %d: takes no work (%s)", id, orUnknown(n.Reason)), false
		}
	}
	if wrong := p.ofShards(); len(wrong) > 0 {
		return wrong[0], false
	}
	return fmt.Sprintf("%d nodes take work and vote in %d shards", len(p.nodes), len(p.shards)), len(p.shards) > 0
}

// arrived: a node has joined and votes in every shard.
func (p *picture) arrived(id uint64) (string, bool) {
	n := p.by[id]
	all, votes := len(p.shards), p.votes(id)
	switch {
	case n == nil:
		return fmt.Sprintf("node %d: not in the list of the node that is asked yet", id), false
	case n.Node.State == api.NodeInvited:
		return fmt.Sprintf("node %d: invited; start it, and it joins", id), false
	case !n.Reachable:
		return fmt.Sprintf("node %d: joined, and cannot be reached (%s)", id, orUnknown(n.Reason)), false
	}
	return fmt.Sprintf("node %d: votes in %d of %d shards", id, votes, all), votes == all && all > 0
}

// gone: no shard has the node any more.
func (p *picture) gone(id uint64) (string, bool) {
	n := p.by[id]
	switch {
	case n == nil:
		return fmt.Sprintf("node %d: out of every shard", id), true
	case n.Reachable:
		return fmt.Sprintf("node %d: votes in %d of %d shards still", id, p.votes(id), len(p.shards)), false
	}
	return fmt.Sprintf("node %d: not out of every shard yet", id), false
}

// idle: the node leads nothing.
func (p *picture) idle(id uint64) (string, bool) {
	own, nobody := p.leads(id)
	switch {
	case own > 0 && !p.others(id):
		return fmt.Sprintf("node %d: leads %d shards, and no other node can lead now", id, own), false
	case own > 0:
		return fmt.Sprintf("node %d: leads %d shards still", id, own), false
	case nobody > 0:
		return fmt.Sprintf("node %d: leads nothing; %d shards have no leader yet", id, nobody), false
	}
	return fmt.Sprintf("node %d: leads nothing and can be stopped", id), len(p.shards) > 0
}
