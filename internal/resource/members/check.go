package members

import (
	"slices"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
)

// check verifies that the list is one that its operations make.
func check(a *op.Audit) error {
	v := &verdict{Audit: a}
	if err := op.Each(a, &nodes, v.node); err != nil {
		return err
	}
	if err := v.replacements(); err != nil {
		return err
	}
	switch {
	case v.rows > 0 && a.Space.Shard != 0:
		a.Report("members", "member", "a shard that is not the catalog's has %d nodes", v.rows)
	case v.rows > 0 && v.joined == 0:
		a.Report("members", "member", "no node has joined, of %d that were members", v.rows)
	case v.present > limits.ClusterNodes:
		a.Report("members", "member", "%d nodes are members; the most is %d", v.present, limits.ClusterNodes)
	}
	return op.Each(a, &chosen, v.choice)
}

// verdict is what the rows are together.
type verdict struct {
	*op.Audit
	rows, present, joined int
	replacing             []*api.ClusterNode // those that were added in the place of another
}

func (v *verdict) node(k nodeKey, n *api.ClusterNode) error {
	if n.NodeID != k.Node || n.NodeID == 0 || n.Address == "" {
		v.Report("members", "member", "node %d: the row is of node %d at %q", k.Node, n.NodeID, n.Address)
	}
	if least := leastRevision(n); n.Revision < least || v.Position > 0 && n.Revision > v.Position {
		v.Report("members", "member", "node %d is %s at revision %d, where %d is the least", k.Node, n.State, n.Revision, least)
	}
	v.rows++
	switch n.State {
	case api.NodeRemoved:
	case api.NodeJoined:
		v.joined++
		v.present++
	case api.NodeInvited:
		// Nothing but draining changes a node that is invited.
		if v.present++; n.Draining == (n.Revision%2 == 1) || n.URL != "" {
			v.Report("members", "member", "node %d is invited at revision %d: draining %v, reached at %q", k.Node, n.Revision, n.Draining, n.URL)
		}
	default:
		v.Report("members", "member", "node %d: there is no state %q", k.Node, n.State)
	}
	if n.Replaces != 0 {
		v.replacing = append(v.replacing, n)
	}
	return nil
}

// leastRevision is how often a node was changed at least to be what it is. The node
// with which the cluster begins joins by its first change.
func leastRevision(n *api.ClusterNode) (least uint64) {
	least = 1
	if n.State == api.NodeRemoved {
		least++
	}
	if n.Draining {
		least++
	}
	return least
}

// replacements verifies that a node that was replaced is removed, and that one took
// its place.
func (v *verdict) replacements() error {
	for i, n := range v.replacing {
		old, ok, err := nodes.Get(v.R, nodeKey{v.Space.Shard, n.Replaces})
		if err = v.Survive(err); err != nil {
			return err
		}
		again := slices.ContainsFunc(v.replacing[:i], func(other *api.ClusterNode) bool { return other.Replaces == n.Replaces })
		if again || !ok || n.Replaces == n.NodeID || old.State != api.NodeRemoved {
			v.Report("members", "member", "node %d replaces node %d, which is not removed, or was replaced before", n.NodeID, n.Replaces)
		}
	}
	return nil
}

func (v *verdict) choice(k leaderKey, c *choice) error {
	n, ok, err := nodes.Get(v.R, nodeKey{k.Shard, c.Node})
	if err = v.Survive(err); err != nil {
		return err
	}
	if k.Shard != 0 || v.Shards > 0 && k.Led > v.Shards || !ok || n.State != api.NodeJoined {
		v.Report("members", "leadership", "shard %d should be led by node %d, which has not joined, or there is no such shard", k.Led, c.Node)
	}
	return nil
}
