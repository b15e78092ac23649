package check_test

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/resource/members"
)

// nodes leaves a list with nodes in every state, one in the place of another, and
// leaders chosen for every shard.
func (w *world) nodes() {
	w.t.Helper()
	join := func(req members.JoinRequest) { w.must(engine.Announce(ctx, w.e, req)) }
	add := func(id uint64, address string) {
		w.must(w.Do(ctx, api.ClusterAdd.Operation, &api.ClusterAddRequest{NodeID: id, Address: address}, new(api.ClusterAddResponse)))
	}
	lead := func(shard int64, id uint64) {
		w.must(w.Do(ctx, api.ClusterTransfer.Operation, &api.ClusterTransferRequest{Shard: shard, NodeID: id}, new(api.ClusterTransferResponse)))
	}
	join(members.JoinRequest{Node: 1, Address: "one:7601", URL: "http://one:7600", First: true})
	for id, address := range map[uint64]string{2: "two:7601", 3: "three:7601", 5: "five:7601", 6: "six:7601"} {
		add(id, address)
	}
	join(members.JoinRequest{Node: 2, Address: "two:7601", URL: "http://two:7600"})
	w.must(w.Do(ctx, api.ClusterReplace.Operation, &api.ClusterReplaceRequest{NodeID: 3, By: 4, Address: "four:7601"}, new(api.ClusterReplaceResponse)))
	w.must(w.Do(ctx, api.ClusterRemove.Operation, &api.ClusterRemoveRequest{NodeID: 6}, new(api.ClusterRemoveResponse)))
	for _, id := range []uint64{2, 5} {
		w.must(w.Do(ctx, api.ClusterDrain.Operation, &api.ClusterDrainRequest{NodeID: id, Draining: true}, new(api.ClusterDrainResponse)))
	}
	for shard := range int64(shards + 1) {
		lead(shard, 1)
	}
}
