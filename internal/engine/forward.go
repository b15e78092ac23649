package engine

import (
	"context"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/limits"
)

// lookAgain is how often a call looks whether a shard has a leader again: an election
// takes some tenths of a second.
const lookAgain = 5 * time.Millisecond

// leaderWait is how long a call waits for a leader.
const leaderWait = limits.LeaderWaitMillis * time.Millisecond

// cluster is what a node knows of where shards are led.
type cluster struct {
	peers   Peers
	log     commitlog.Log
	opened  chan struct{} // closed once log is set
	closing <-chan struct{}
}

// elsewhere is the node that leads the call's shard, 0 when it is this one or the
// call is about this node. Errors: OwnershipLost; nothing has happened then.
func elsewhere(ctx context.Context, c *call) (uint64, error) {
	if c.cluster == nil || c.h.Op.Scope == api.NodeScope {
		return 0, nil
	}
	return c.cluster.leader(ctx, c.shard, c.given)
}

// leader waits until a shard has a leader and says which; 0 is this node. A call that
// another node has handed on waits only for this one to be ready to lead.
func (e *cluster) leader(ctx context.Context, shard uint16, given bool) (uint64, error) {
	self := e.peers.Node()
	deadline := time.Now().Add(leaderWait)
	for {
		st := e.log.Status(shard)
		switch {
		case st.Here || st.Leader == self && st.Err != nil: // which then says why it takes nothing
			return 0, nil
		case st.Leader != self && given:
			return 0, notLeader(shard)
		case st.Leader != self && st.Leader != 0:
			return st.Leader, nil
		case time.Now().After(deadline):
			return 0, noLeader(shard)
		}
		if err := e.wait(ctx, lookAgain); err != nil {
			return 0, err
		}
	}
}

func noLeader(shard uint16) error {
	return fault.New(fault.OwnershipLost, "no_leader",
		"shard %d has no leader that this node can reach; nothing happened. A majority of the nodes must be up and reach each other", shard)
}

// wait lets a little time go by before a shard's leader is looked for again.
func (e *cluster) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Cancelled, "cancelled", "the caller went away while the shard had no leader; nothing happened")
	case <-e.closing:
		return fault.New(fault.OwnershipLost, "store_closed", "the node is closing; nothing happened")
	}
}

// Reasons for which another node certainly did nothing, so that a call may go to the
// next leader.
const (
	reasonNotLeader   = "not_leader"
	reasonUnreachable = "unreachable"
)

func notLeader(shard uint16) error {
	return fault.New(fault.OwnershipLost, reasonNotLeader, "this node does not lead shard %d; nothing happened", shard)
}

// untouched says that a node that was asked certainly did nothing.
func untouched(err error) bool {
	f := fault.From(err)
	return f != nil && f.Code == fault.OwnershipLost && (f.Reason == reasonNotLeader || f.Reason == reasonUnreachable)
}
