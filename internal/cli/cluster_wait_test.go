package cli

import (
	"testing"

	"github.com/keyload/keyload/api"
)

// What is waited for, told step by step: nothing is said to be there that is not.
func TestAChangeHasTakenEffectWhenEveryShardHasIt(t *testing.T) {
	var (
		add      = &api.ClusterAddRequest{NodeID: 3}
		replace  = &api.ClusterReplaceRequest{NodeID: 2, By: 3}
		remove   = &api.ClusterRemoveRequest{NodeID: 2}
		drain    = &api.ClusterDrainRequest{NodeID: 2, Draining: true}
		off      = &api.ClusterDrainRequest{NodeID: 2}
		transfer = &api.ClusterTransferRequest{Shard: 1, NodeID: 3}
		status   = &api.ClusterStatusRequest{}
	)
	type change = func(r *api.ClusterStatusResponse)
	without := func(r *api.ClusterStatusResponse) { r.Nodes = append(r.Nodes[:1], r.Nodes[2:]...); ledBy(r, 1, 3, 3) }
	for _, c := range []struct {
		request any
		change  change
		want    string
		done    bool
	}{
		{add, func(r *api.ClusterStatusResponse) { r.Nodes = r.Nodes[:2] }, "node 3: not in the list of the node that is asked yet", false},
		{add, func(r *api.ClusterStatusResponse) { r.Nodes[2] = newNode(3, api.NodeInvited) }, "node 3: invited; start it, and it joins", false},
		{add, func(r *api.ClusterStatusResponse) { down(&r.Nodes[2]) }, "node 3: joined, and cannot be reached (connection refused)", false},
		{add, func(r *api.ClusterStatusResponse) { r.Nodes[2].Replicas[1].Learner = true }, "node 3: votes in 2 of 3 shards", false},
		{add, func(r *api.ClusterStatusResponse) { r.Nodes[2].Replicas = nil }, "node 3: votes in 0 of 3 shards", false},
		{add, nil, "node 3: votes in 3 of 3 shards", true},
		{replace, func(r *api.ClusterStatusResponse) { r.Nodes[2].Replicas[1].Member = false }, "node 3: votes in 2 of 3 shards", false},
		{replace, func(r *api.ClusterStatusResponse) { down(&r.Nodes[1]) }, "node 2: not out of every shard yet", false},
		{replace, without, "node 2: out of every shard", true},
		{remove, func(r *api.ClusterStatusResponse) { r.Nodes[1].Replicas[2].Member = false }, "node 2: votes in 2 of 3 shards still", false},
		{remove, without, "node 2: out of every shard", true},
		{drain, nil, "node 2: leads 1 shards still", false},
		{drain, func(r *api.ClusterStatusResponse) { ledBy(r, 1, 0, 3) }, "node 2: leads nothing; 1 shards have no leader yet", false},
		{drain, func(r *api.ClusterStatusResponse) { down(&r.Nodes[0]); down(&r.Nodes[2]) }, "node 2: leads 1 shards, and no other node can lead now", false},
		{drain, func(r *api.ClusterStatusResponse) { ledBy(r, 1, 1, 3) }, "node 2: leads nothing and can be stopped", true},
		{off, nil, "node 2 may lead again", true},
		{transfer, nil, "shard 1: led by node 2", false},
		{transfer, func(r *api.ClusterStatusResponse) { ledBy(r, 1, 0, 3) }, "shard 1: led by nobody", false},
		{transfer, func(r *api.ClusterStatusResponse) { ledBy(r, 1, 3, 3) }, "shard 1: led by node 3", true},
		{&api.ClusterTransferRequest{Shard: 1}, nil, "any node may lead shard 1", true},
		{status, func(r *api.ClusterStatusResponse) { r.Nodes = append(r.Nodes, newNode(4, api.NodeInvited)) }, "node 4: invited; start it, and it joins", false},
		{status, func(r *api.ClusterStatusResponse) { down(&r.Nodes[1]) }, "node 2: joined, and cannot be reached (connection refused)", false},
		{status, func(r *api.ClusterStatusResponse) { down(&r.Nodes[1]); down(&r.Nodes[2]); ledBy(r, 0, 0, 0) }, "no majority: of the nodes that vote 1 can be reached, and 2 must be", false},
		{status, func(r *api.ClusterStatusResponse) { r.Nodes[1].Node.State = api.NodeRemoved }, "node 2: votes in 3 of 3 shards still", false},
		{status, func(r *api.ClusterStatusResponse) { r.Nodes[1].Replicas[0].Learner = true }, "node 2: votes in 2 of 3 shards", false},
		{status, func(r *api.ClusterStatusResponse) { r.Nodes[1].Ready, r.Nodes[1].Reason = false, "no room" }, "node 2: takes no work (no room)", false},
		{status, func(r *api.ClusterStatusResponse) { r.Nodes[1].Replicas[0].Failure = "no room" }, "shard 0 on node 2 has stopped: no room", false},
		{status, func(r *api.ClusterStatusResponse) { ledBy(r, 1, 0, 3) }, "nobody leads shard 1: a majority of its members must be up and reach each other", false},
		{status, func(r *api.ClusterStatusResponse) { r.Nodes[1].Node.Draining = true }, "3 nodes take work and vote in 3 shards", true},
		{status, nil, "3 nodes take work and vote in 3 shards", true},
	} {
		r := trio()
		if c.change != nil {
			c.change(r)
		}
		if text, done := pictureOf(r).effect(c.request); text != c.want || done != c.done {
			t.Errorf("%T: %q, %v; want %q, %v", c.request, text, done, c.want, c.done)
		}
	}
}
