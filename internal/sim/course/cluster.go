package course

import (
	"context"
	"encoding/json"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/resource/members"
)

// nodes fills the list of members, changes it in every way, and leaves one node. No
// second process is there: the list says what is wanted, and nothing else follows
// from it on a store that runs alone.
func nodes() []Step {
	add := func(id uint64, address string) Step {
		return is("add a node", api.ClusterAdd.Operation, func() api.CommandRequest {
			return &api.ClusterAddRequest{NodeID: id, Address: address}
		})
	}
	remove := func(id uint64) Step {
		return is("remove a node", api.ClusterRemove.Operation, func() api.CommandRequest { return &api.ClusterRemoveRequest{NodeID: id} })
	}
	drain := func(id uint64, draining bool) Step {
		return is("drain a node", api.ClusterDrain.Operation, func() api.CommandRequest {
			return &api.ClusterDrainRequest{NodeID: id, Draining: draining}
		})
	}
	lead := func(shard int64, id uint64) Step {
		return is("choose a leader", api.ClusterTransfer.Operation, func() api.CommandRequest {
			return &api.ClusterTransferRequest{Shard: shard, NodeID: id}
		})
	}
	replace := func(id, by uint64) Step {
		return is("replace a node", api.ClusterReplace.Operation, func() api.CommandRequest {
			return &api.ClusterReplaceRequest{NodeID: id, By: by, Address: "four:7601"}
		})
	}
	return []Step{
		add(2, "two:7601").refusedFor("no_cluster"),
		announce(members.JoinRequest{Node: 1, Address: "one:7601", URL: "http://one:7600", First: true}),
		remove(1).refusedFor("last_node"),
		add(2, "two:7601"),
		add(2, "two:7601"),
		add(2, "elsewhere:7601").refusedFor("node_known"),
		lead(1, 2).refusedFor("not_joined"),
		announce(members.JoinRequest{Node: 2, Address: "two:7601", URL: "http://two:7600"}),
		announce(members.JoinRequest{Node: 2, Address: "moved:7601", URL: "http://moved:7600", Known: true}),
		lead(1, 2),
		lead(2, 1),
		add(3, "three:7601"),
		replace(3, 2).refusedFor("node_known"),
		replace(3, 4),
		drain(2, true),
		lead(0, 2).refusedFor("draining"),
		drain(2, false),
		drain(1, true),
		look("at a cluster"),
		remove(9).refusedFor("unknown_node"),
		remove(2),
		remove(4),
		lead(2, 0),
		drain(1, false),
	}
}

// announce is what a node says of itself. That it has joined before is the answer to
// a node that asks again because it lost its power before the first answer came.
func announce(req members.JoinRequest) Step {
	return Step{Name: "a node announces itself", act: func(ctx context.Context, r *Run) error {
		err := engine.Announce(ctx, r.engine, req)
		if f := fault.From(err); f != nil && f.Reason == "node_joined" {
			return nil
		}
		return err
	}}
}

// nodes are lines of the list of members, which no operation of a store that runs
// alone shows.
func (r *Run) nodes() ([]string, error) {
	s := r.store.NewSnapshot()
	defer s.Close()
	all, err := members.All(s, 0)
	if err != nil {
		return nil, err
	}
	chosen, err := members.Chosen(s, 0)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(chosen)
	lines := []string{"leaders chosen: " + string(b)}
	for i := range all {
		if b, err = json.Marshal(&all[i]); err != nil {
			return nil, err
		}
		lines = append(lines, "node: "+string(b))
	}
	return lines, err
}
