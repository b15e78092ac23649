package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/check"
)

// look is how often a state that is waited for is looked at.
const look = 50 * time.Millisecond

// wait repeats a look until it finds what it looks for; what is still missing then
// is the error of a wait in vain.
func wait(ctx context.Context, what string, found func(context.Context) error) error {
	for {
		err := found(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w, %w", what, ctx.Err(), err)
		}
	}
}

// pause lets time go by; false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Settled waits until every node runs, is ready, and votes in every shard, which has
// a leader that all agree on.
func Settled(ctx context.Context, c *Cluster) error {
	return wait(ctx, "the cluster is whole", func(ctx context.Context) error {
		for i := range c.nodes {
			if err := c.whole(ctx, i); err != nil {
				return fmt.Errorf("as node %d sees it: %w", i, err)
			}
		}
		return nil
	})
}

// whole is what one node says against the cluster being whole.
func (c *Cluster) whole(ctx context.Context, i int) error {
	s, err := c.status(ctx, i)
	if err != nil {
		return err
	}
	if len(s.Nodes) != len(c.nodes) {
		return fmt.Errorf("there are %d nodes, not %d", len(s.Nodes), len(c.nodes))
	}
	leaders := map[uint32]uint64{}
	for _, n := range s.Nodes {
		if !n.Reachable || !n.Ready || n.Node.State != api.NodeJoined || len(n.Replicas) != c.o.Shards+1 {
			return fmt.Errorf("node %d is reachable %v, ready %v (%s), %s, and has %d shards", n.Node.NodeID, n.Reachable, n.Ready, n.Reason, n.Node.State, len(n.Replicas))
		}
		for _, r := range n.Replicas {
			if r.Leader == 0 || r.Learner || !r.Member || r.Failure != "" {
				return fmt.Errorf("node %d, shard %d: leader %d, learner %v, member %v, failure %q", n.Node.NodeID, r.Shard, r.Leader, r.Learner, r.Member, r.Failure)
			}
			if l := leaders[r.Shard]; l != 0 && l != r.Leader {
				return fmt.Errorf("shard %d is led by %d and by %d", r.Shard, l, r.Leader)
			}
			leaders[r.Shard] = r.Leader
		}
	}
	return nil
}

func (c *Cluster) status(ctx context.Context, i int) (*api.ClusterStatusResponse, error) {
	d := c.Node(i)
	defer d.Close()
	return api.Call(ctx, d, api.ClusterStatus, &api.ClusterStatusRequest{})
}

// Leader is the node that leads a shard, by what a node says that runs.
func (c *Cluster) Leader(ctx context.Context, shard uint32) (leader int, err error) {
	return leader, wait(ctx, fmt.Sprintf("shard %d has a leader", shard), func(ctx context.Context) error {
		for i, n := range c.nodes {
			if n.p == nil {
				continue
			}
			s, err := c.status(ctx, i)
			if err != nil {
				continue
			}
			for _, other := range s.Nodes {
				for _, r := range other.Replicas {
					if r.Shard == shard && r.Leader == other.Node.NodeID {
						return c.place(r.Leader, &leader)
					}
				}
			}
		}
		return errors.New("no node says so")
	})
}

// place finds who a number is.
func (c *Cluster) place(id uint64, at *int) error {
	for i, n := range c.nodes {
		if n.id == id {
			*at = i
			return nil
		}
	}
	return fmt.Errorf("node %d is no place of the cluster", id)
}

// Same waits until every node has been seen at one position of each shard, and wants
// its state to be the same there, and at every other position at which two were seen.
func Same(ctx context.Context, c *Cluster) error {
	type at struct {
		shard    uint32
		position uint64
	}
	digests, seen := map[at]string{}, map[at]map[int]bool{}
	met := map[uint32]bool{}
	var different error
	err := wait(ctx, "every shard has been seen at one position on every node", func(ctx context.Context) error {
		for i := range c.nodes {
			d := c.Node(i)
			s, err := api.Call(ctx, d, api.AdminStatus, &api.AdminStatusRequest{})
			if err = errors.Join(err, d.Close()); err != nil {
				return err
			}
			for _, sh := range s.Shards {
				p := at{sh.Shard, sh.Position}
				if known, ok := digests[p]; ok && known != sh.Digest {
					different = fmt.Errorf("node %d has another state than the others in shard %d at position %d: %s, not %s", i, p.shard, p.position, sh.Digest, known)
					return nil
				}
				if digests[p] = sh.Digest; seen[p] == nil {
					seen[p] = map[int]bool{}
				}
				seen[p][i] = true
				met[p.shard] = met[p.shard] || len(seen[p]) == len(c.nodes)
			}
		}
		if n := len(met); n != c.o.Shards+1 {
			return fmt.Errorf("%d shards were seen, not %d", n, c.o.Shards+1)
		}
		for shard, m := range met {
			if !m {
				return fmt.Errorf("the nodes are at different positions of shard %d", shard)
			}
		}
		return nil
	})
	return errors.Join(err, different)
}

// Sound checks every shard on every node.
func Sound(ctx context.Context, c *Cluster) error {
	var errs []error
	for i := range c.nodes {
		d := c.Node(i)
		r, err := check.Remote(ctx, d, nil)
		if err = errors.Join(err, d.Close()); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		for _, x := range r.Findings {
			errs = append(errs, fmt.Errorf("check of node %d: %s %s: %s", i, x.Invariant, x.Where, x.Text))
		}
	}
	return errors.Join(errs...)
}
