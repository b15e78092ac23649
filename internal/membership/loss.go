package membership

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// lagging is how many commands a node may be behind and count as one that can carry a
// shard at once. What nodes say of themselves is not of one moment.
const lagging = 10_000

// MayGo refuses a request to let a node go (cluster.remove, cluster.replace, or
// cluster.drain with draining) where fewer than a majority of the voters that stay are
// reached and up to date in any shard: Conflict (reason majority_lost). It asks every
// node. Other requests pass.
func (s *Service) MayGo(req any) error {
	node := goes(req)
	if node == 0 {
		return nil
	}
	st, err := s.Status()
	if err != nil {
		return err
	}
	return lost(st.Nodes, node, uint32(s.cfg.Engine.Shards()))
}

// goes is the node that a request lets go, 0 for none.
func goes(req any) uint64 {
	switch r := req.(type) {
	case *api.ClusterRemoveRequest:
		return r.NodeID
	case *api.ClusterReplaceRequest:
		return r.NodeID
	case *api.ClusterDrainRequest:
		if r.Draining {
			return r.NodeID
		}
	}
	return 0
}

// lost is the error of letting a node go, by what all nodes say. Of one that says
// nothing it is taken that it votes wherever it could.
func lost(nodes []api.ClusterNodeStatus, without uint64, shards uint32) error {
	known := false
	for i := range nodes {
		known = known || nodes[i].Node.NodeID == without && nodes[i].Node.State == api.NodeJoined
	}
	if !known {
		return nil // nobody depends on it, or there is no such node
	}
	for shard := range shards + 1 {
		ahead := uint64(0)
		for i := range nodes {
			if r := replicaOf(&nodes[i], shard); r != nil {
				ahead = max(ahead, r.Position)
			}
		}
		voters, fit := 0, 0
		for i := range nodes {
			n, r := &nodes[i], replicaOf(&nodes[i], shard)
			if n.Node.NodeID == without || n.Node.State == api.NodeInvited || r != nil && (!r.Member || r.Learner) {
				continue
			}
			if voters++; r != nil && r.Failure == "" && ahead-r.Position <= lagging {
				fit++
			}
		}
		if fit < voters/2+1 {
			return fault.New(fault.Conflict, "majority_lost",
				"without node %d shard %d would have %d voters, of which %d are reached and up to date, and %d must be. Nothing happened: start the others, or replace those that are lost, first",
				without, shard, voters, fit, voters/2+1)
		}
	}
	return nil
}

// replicaOf is what a node says of its copy of a shard, nil where it says nothing.
func replicaOf(n *api.ClusterNodeStatus, shard uint32) *api.ClusterReplica {
	if !n.Reachable {
		return nil
	}
	for i := range n.Replicas {
		if n.Replicas[i].Shard == shard {
			return &n.Replicas[i]
		}
	}
	return nil
}
