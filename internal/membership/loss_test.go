package membership

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// says are nodes that vote in two shards, all up to date.
func says(ids ...uint64) (out []api.ClusterNodeStatus) {
	for _, n := range joined(ids...) {
		out = append(out, api.ClusterNodeStatus{Node: n, Reachable: true, Replicas: []api.ClusterReplica{
			{Shard: 0, Member: true, Position: lagging + 5}, {Shard: 1, Member: true, Position: lagging + 5},
		}})
	}
	return out
}

func TestANodeMayGoIfAMajorityOfThoseThatStayCanCarryEveryShard(t *testing.T) {
	down := func(i int) func([]api.ClusterNodeStatus) {
		return func(n []api.ClusterNodeStatus) { n[i].Reachable, n[i].Replicas = false, nil }
	}
	for name, c := range map[string]struct {
		nodes   int
		change  func(n []api.ClusterNodeStatus)
		without uint64
		may     bool
	}{
		"any of three":              {3, func([]api.ClusterNodeStatus) {}, 1, true},
		"the dead one of three":     {3, down(2), 3, true},
		"a live one beside it":      {3, down(2), 1, false},
		"any of two":                {2, func([]api.ClusterNodeStatus) {}, 2, true},
		"the dead one of two":       {2, down(1), 2, true},
		"the live one of two":       {2, down(1), 1, false},
		"one of five with one down": {5, down(4), 1, true},
		"one of five with two down": {5, func(n []api.ClusterNodeStatus) { down(4)(n); down(3)(n) }, 1, false},
		"a dead one of those two":   {5, func(n []api.ClusterNodeStatus) { down(4)(n); down(3)(n) }, 4, true},
		"one that nobody knows":     {3, down(2), 9, true},
		"one that was invited": {3, func(n []api.ClusterNodeStatus) {
			down(2)(n)
			n[1].Node.State = api.NodeInvited
		}, 2, true},
		"beside one that was invited only": {4, func(n []api.ClusterNodeStatus) {
			down(3)(n)
			n[3].Node.State = api.NodeInvited
		}, 1, true},
		"beside one that learns": {2, func(n []api.ClusterNodeStatus) { n[1].Replicas[1].Learner = true }, 1, false},
		"beside one that lags as it may": {2, func(n []api.ClusterNodeStatus) {
			n[1].Replicas[1].Position = 5
		}, 1, true},
		"beside one that lags more": {2, func(n []api.ClusterNodeStatus) {
			n[1].Replicas[1].Position = 4
		}, 1, false},
		"beside one whose shard has stopped": {2, func(n []api.ClusterNodeStatus) {
			n[1].Replicas[0].Failure = "its disk is full"
		}, 1, false},
	} {
		var ids []uint64
		for i := range c.nodes {
			ids = append(ids, uint64(i)+1)
		}
		nodes := says(ids...)
		c.change(nodes)
		err := lost(nodes, c.without, 1)
		if f := fault.From(err); c.may != (err == nil) || err != nil && (f.Code != fault.Conflict || f.Reason != "majority_lost") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyARequestThatLetsANodeGoIsHeldAgainstTheMajority(t *testing.T) {
	for _, c := range []struct {
		req  any
		want uint64
	}{
		{&api.ClusterRemoveRequest{NodeID: 2}, 2}, {&api.ClusterReplaceRequest{NodeID: 2, By: 4}, 2},
		{&api.ClusterDrainRequest{NodeID: 2, Draining: true}, 2}, {&api.ClusterDrainRequest{NodeID: 2}, 0},
		{&api.ClusterAddRequest{NodeID: 2}, 0}, {&api.ClusterTransferRequest{NodeID: 2}, 0},
	} {
		if got := goes(c.req); got != c.want {
			t.Errorf("%T lets node %d go, not %d", c.req, got, c.want)
		}
	}
}
