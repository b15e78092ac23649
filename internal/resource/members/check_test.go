package members

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// findings are what a check of a shard says of the list, the store having four
// shards.
func (l *list) findings(shard uint16) []op.Finding {
	l.t.Helper()
	a := op.NewAudit(op.Scope{R: l.tx, Space: table.Space{Shard: shard}, Now: 1000}, []op.Resource{Resource()})
	a.Shards, a.Position = 4, 100
	a.Partitions, a.Standing = map[[16]byte]bool{}, func(uint32) (op.Standing, error) { return op.Standing{}, nil } // of no resources
	if err := a.Run(); err != nil {
		l.t.Fatal(err)
	}
	return a.Findings
}

func TestACheckFindsEveryListThatNoOperationMakes(t *testing.T) {
	node := func(n api.ClusterNode) func(l *list) {
		return func(l *list) { nodes.Put(l.tx, nodeKey{0, n.NodeID}, &n) }
	}
	lead := func(shard, led uint16, id uint64) func(l *list) {
		return func(l *list) { chosen.Put(l.tx, leaderKey{shard, led}, &choice{id}) }
	}
	invited := api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeInvited, Revision: 1}
	for what, c := range map[string]struct {
		wrong int
		do    func(l *list)
	}{
		"nothing":                         {0, func(*list) {}},
		"a drained invitation":            {0, func(l *list) { l.drain(4, true) }},
		"one that is back":                {0, func(l *list) { l.drain(4, true); l.drain(4, false) }},
		"a choice for the last shard":     {0, lead(0, 4, 2)},
		"a choice for no shard":           {1, lead(0, 5, 2)},
		"a choice of an invited node":     {1, lead(0, 1, 4)},
		"a choice of a removed node":      {1, lead(0, 1, 3)},
		"a choice of nobody":              {1, lead(0, 1, 9)},
		"a node without a number":         {1, node(api.ClusterNode{Address: "a", State: api.NodeInvited, Revision: 1})},
		"a row of another node":           {1, func(l *list) { nodes.Put(l.tx, nodeKey{0, 6}, &invited) }},
		"no address":                      {1, node(api.ClusterNode{NodeID: 5, State: api.NodeInvited, Revision: 1})},
		"an unknown state":                {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: "lost", Revision: 1})},
		"no revision":                     {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeJoined})},
		"a revision beyond the shard":     {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeJoined, Revision: 101})},
		"a revision at the shard":         {0, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeJoined, Revision: 100})},
		"removed before it was added":     {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeRemoved, Revision: 1})},
		"draining before it was told":     {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeJoined, Draining: true, Revision: 1})},
		"an invitation changed by nobody": {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeInvited, Revision: 2})},
		"an invitation with a URL":        {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeInvited, URL: "u", Revision: 1})},
		"in the place of a member":        {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeInvited, Replaces: 2, Revision: 1})},
		"in the place of nobody":          {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeInvited, Replaces: 9, Revision: 1})},
		"in its own place":                {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeRemoved, Replaces: 5, Revision: 2})},
		"in a place that is taken":        {1, node(api.ClusterNode{NodeID: 5, Address: "a5", State: api.NodeInvited, Replaces: 3, Revision: 1})},
		"nobody has joined": {2, func(l *list) {
			for _, id := range []uint64{1, 2} {
				node(api.ClusterNode{NodeID: id, Address: "a", State: api.NodeRemoved, Revision: 3})(l)
			}
		}},
		"seven nodes": {0, func(l *list) { l.joined(5, 6, 7, 8) }},
		"eight nodes": {1, func(l *list) {
			l.joined(5, 6, 7, 8)
			node(api.ClusterNode{NodeID: 9, Address: "a9", State: api.NodeInvited, Revision: 1})(l)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			l := newList(t).first().joined(2, 3)
			r, _ := l.replace(3, 4, "a4:1")
			l.want(r, "", "replace")
			l.want(l.transfer(1, 2), "", "choosing")
			c.do(l)
			if got := l.findings(0); len(got) != c.wrong {
				t.Errorf("%d findings, want %d: %+v", len(got), c.wrong, got)
			}
		})
	}
}

func TestAListElsewhereThanInTheCatalogsShardIsFound(t *testing.T) {
	l := newList(t)
	nodes.Put(l.tx, nodeKey{1, 1}, &api.ClusterNode{NodeID: 1, Address: "a1", State: api.NodeJoined, Revision: 1})
	chosen.Put(l.tx, leaderKey{1, 1}, &choice{1})
	if got := l.findings(1); len(got) != 2 {
		t.Errorf("findings: %+v", got)
	}
	if got := l.findings(0); len(got) != 0 {
		t.Errorf("findings in the catalog's shard: %+v", got)
	}
}
