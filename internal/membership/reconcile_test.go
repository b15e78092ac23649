package membership

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/replica"
)

func joined(ids ...uint64) (out []api.ClusterNode) {
	for _, id := range ids {
		out = append(out, api.ClusterNode{NodeID: id, State: api.NodeJoined, URL: "http://node"})
	}
	return out
}

func voters(ids ...uint64) (out []replica.Member) {
	for _, id := range ids {
		out = append(out, replica.Member{Node: id, Match: 100, Active: true})
	}
	return out
}

// situation is a shard that node 1 leads among three that are as they should be.
func situation(change func(v *view)) *view {
	v := &view{self: 1, shard: 2, list: &engine.Members{All: joined(1, 2, 3), Chosen: map[uint16]uint64{}}, members: voters(1, 2, 3), leads: map[uint64]int{1: 3, 2: 3, 3: 3}, unready: map[uint64]bool{}}
	change(v)
	return v
}

func TestALeaderBringsItsShardNearerToTheListOneStepAtATime(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *view)
		want   step
	}{
		"nothing is to be done":             {func(*view) {}, step{}},
		"a node that has joined is invited": {func(v *view) { v.list.All = joined(1, 2, 3, 4) }, step{invite, 4}},
		"one that was only invited is not": {func(v *view) {
			v.list.All = append(v.list.All, api.ClusterNode{NodeID: 4, State: api.NodeInvited})
		}, step{}},
		"a learner that follows is promoted":              {func(v *view) { v.members[2].Learner = true }, step{promote, 3}},
		"a learner that has not told where it is, is not": {func(v *view) { v.members[2].Learner, v.list.All[2].URL = true, "" }, step{}},
		"a learner that is silent is not":                 {func(v *view) { v.members[2].Learner, v.members[2].Active = true, false }, step{}},
		"a learner that gets a snapshot is not": {func(v *view) {
			v.members[2].Learner, v.members[2].Snapshot = true, true
		}, step{}},
		"a removed node goes":                 {func(v *view) { v.list.All[1].State = api.NodeRemoved }, step{remove, 2}},
		"a node the list does not know stays": {func(v *view) { v.list.All = joined(1, 2) }, step{}},
		"a removed leader hands on first":     {func(v *view) { v.list.All[0].State = api.NodeRemoved }, step{handOn, 2}},
		"a replaced node waits for the one in its place": {func(v *view) {
			v.list.All = append(v.list.All, api.ClusterNode{NodeID: 4, State: api.NodeInvited, Replaces: 3})
			v.list.All[2].State = api.NodeRemoved
		}, step{}},
		"which is invited first": {func(v *view) {
			v.list.All = append(v.list.All, api.ClusterNode{NodeID: 4, State: api.NodeJoined, URL: "u", Replaces: 3})
			v.list.All[2].State = api.NodeRemoved
		}, step{invite, 4}},
		"and must vote": {func(v *view) {
			v.list.All = append(v.list.All, api.ClusterNode{NodeID: 4, State: api.NodeJoined, URL: "u", Replaces: 3})
			v.list.All[2].State, v.members = api.NodeRemoved, append(v.members, replica.Member{Node: 4, Learner: true})
		}, step{}},
		"before the other goes": {func(v *view) {
			v.list.All = append(v.list.All, api.ClusterNode{NodeID: 4, State: api.NodeJoined, URL: "u", Replaces: 3})
			v.list.All[2].State, v.members = api.NodeRemoved, voters(1, 2, 3, 4)
		}, step{remove, 3}},
		"a draining leader hands on to who leads least": {func(v *view) {
			v.list.All[0].Draining, v.leads[3] = true, 1
		}, step{handOn, 3}},
		"but not to one that lags":               {func(v *view) { v.list.All[0].Draining, v.members[1].Lacks = true, fitLacks+1 }, step{handOn, 3}},
		"a few entries are no lag":               {func(v *view) { v.list.All[0].Draining, v.members[1].Lacks = true, fitLacks }, step{handOn, 2}},
		"nor to one that drains":                 {func(v *view) { v.list.All[0].Draining, v.list.All[1].Draining = true, true }, step{handOn, 3}},
		"the chosen node leads":                  {func(v *view) { v.list.Chosen[2] = 3 }, step{handOn, 3}},
		"of this shard":                          {func(v *view) { v.list.Chosen[1] = 3 }, step{}},
		"once it is there":                       {func(v *view) { v.list.Chosen[2], v.members[2].Active = 3, false }, step{}},
		"the chosen one keeps it":                {func(v *view) { v.list.Chosen[2], v.leads[1], v.leads[2] = 1, 9, 0 }, step{}},
		"two more are handed on":                 {func(v *view) { v.leads[1], v.leads[2] = 4, 2 }, step{even, 2}},
		"one more is even":                       {func(v *view) { v.leads[1], v.leads[2], v.leads[3] = 3, 2, 3 }, step{}},
		"a leader whose clock is wrong hands on": {func(v *view) { v.unready[1] = true }, step{handOn, 2}},
		"though it was chosen":                   {func(v *view) { v.unready[1], v.list.Chosen[2] = true, 1 }, step{handOn, 2}},
		"but not to one like it":                 {func(v *view) { v.unready[1], v.unready[2] = true, true }, step{handOn, 3}},
		"nor if all are":                         {func(v *view) { v.unready[1], v.unready[2], v.unready[3] = true, true, true }, step{}},
		"a chosen one must be ready":             {func(v *view) { v.list.Chosen[2], v.unready[3] = 3, true }, step{}},
		"who alone is left goes on":              {func(v *view) { v.list.All, v.members, v.leads = joined(1), voters(1), map[uint64]int{1: 9} }, step{}},
	} {
		if got := situation(c.change).next(true); got != c.want {
			t.Errorf("%s: %s of %d, want %s of %d", name, got.do, got.node, c.want.do, c.want.node)
		}
	}
	if got := situation(func(v *view) { v.leads[1], v.leads[2] = 9, 0 }).next(false); got.do != nothing {
		t.Errorf("so soon after the last: %s", got.do)
	}
}
