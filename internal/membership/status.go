package membership

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/wire"
)

// asking is how long a node waits for another one to say how it is.
const asking = 2 * time.Second

// Handler answers cluster.status. about gives the service once it runs; nil where the
// store runs alone.
func Handler(about func() *Service) op.Handler {
	return op.Ask(api.ClusterStatus, op.Query[api.ClusterStatusRequest, api.ClusterStatusResponse]{
		Run: func(*op.View, *api.ClusterStatusRequest) (*api.ClusterStatusResponse, error) {
			if s := about(); s != nil {
				return s.Status()
			}
			return &api.ClusterStatusResponse{}, nil
		},
	})
}

// Status asks every node.
func (s *Service) Status() (*api.ClusterStatusResponse, error) {
	list, err := engine.Nodes(s.cfg.Engine)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	out := &api.ClusterStatusResponse{Node: s.cfg.Self.NodeID}
	for i := range list.All {
		if n := &list.All[i]; n.State != api.NodeRemoved || s.needed(n.NodeID) {
			out.Nodes = append(out.Nodes, api.ClusterNodeStatus{Node: *n})
		}
	}
	var wg sync.WaitGroup
	for i := range out.Nodes {
		wg.Go(func() { s.ask(ctx, &out.Nodes[i]) })
	}
	wg.Wait()
	return out, nil
}

func (s *Service) ask(ctx context.Context, n *api.ClusterNodeStatus) {
	listed := n.Node
	if listed.NodeID == s.cfg.Self.NodeID {
		*n = s.own()
		n.Node = listed
		return
	}
	before, beforeClock := time.Now(), s.cfg.Clock()
	b, err := s.cfg.Peers.Call(ctx, listed.NodeID, engine.CallStatus, nil)
	if err == nil {
		err = wire.DecodeLog(b, n)
	}
	n.Node = listed
	if err != nil {
		n.Reachable, n.Reason = false, err.Error()
		return
	}
	middle := beforeClock.Add(time.Since(before) / 2)
	n.SkewMillis = int64(n.Clock) - middle.UnixMilli()
}

// own is what this node says of itself.
func (s *Service) own() api.ClusterNodeStatus {
	st := s.cfg.Engine.Status()
	n := api.ClusterNodeStatus{Reachable: true, Ready: st.Ready, Reason: st.Reason, Clock: api.TimeOf(s.cfg.Clock())}
	for shard := range s.cfg.Engine.Shards() + 1 {
		at := engine.Standing(s.cfg.Engine, shard)
		r := api.ClusterReplica{
			Shard: uint32(shard), Leader: at.Leader, Term: at.Term, Position: at.Position, Digest: fmt.Sprintf("%016x", at.Digest),
		}
		if p, err := s.cfg.Replicas.Progress(context.Background(), shard); err == nil {
			if m := find(p.Members, s.cfg.Self.NodeID); m != nil {
				r.Member, r.Learner = true, m.Learner
			}
		}
		if at.Err != nil {
			r.Failure = at.Err.Error()
		}
		if at.Here {
			n.Leads++
		}
		n.Replicas = append(n.Replicas, r)
	}
	return n
}

// Answer is what another node is told that asks.
func (s *Service) Answer() ([]byte, error) { return wire.EncodeLog(s.own()) }
