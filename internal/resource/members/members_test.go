package members

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// list is a list of members, and the commands that change it.
type list struct {
	t  *testing.T
	tx *kv.Tx
}

func newList(t *testing.T) *list {
	t.Helper()
	s, err := kv.Open("db", kv.Options{FS: vfs.NewMem(), NoSync: true, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	tx := s.NewTx()
	tx.Begin()
	t.Cleanup(func() {
		if err := errors.Join(tx.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return &list{t, tx}
}

func (l *list) ctx() *op.Ctx {
	s := op.Scope{Space: table.Space{Shard: 0}, Now: 1000, Principal: &api.Principal{ID: "ann", Administrator: true}}
	return op.NewCtx(s, l.tx, [16]byte{1}, 100, 1, 1)
}

func reason(err error) string {
	if f := fault.From(err); f != nil {
		return string(f.Code) + "/" + f.Reason
	}
	return ""
}

func (l *list) join(req JoinRequest) (string, *api.ClusterNode) {
	resp, err := join(l.ctx(), &req)
	if err != nil {
		return reason(err), nil
	}
	return "", &resp.Node
}

func (l *list) add(id uint64, address string) (string, *api.ClusterNode) {
	resp, err := add(l.ctx(), &api.ClusterAddRequest{NodeID: id, Address: address})
	if err != nil {
		return reason(err), nil
	}
	return "", &resp.Node
}

func (l *list) remove(id uint64) string {
	_, err := remove(l.ctx(), &api.ClusterRemoveRequest{NodeID: id})
	return reason(err)
}

func (l *list) replace(id, by uint64, address string) (string, *api.ClusterNode) {
	resp, err := replace(l.ctx(), &api.ClusterReplaceRequest{NodeID: id, By: by, Address: address})
	if err != nil {
		return reason(err), nil
	}
	return "", &resp.Node
}

func (l *list) drain(id uint64, draining bool) string {
	_, err := drain(l.ctx(), &api.ClusterDrainRequest{NodeID: id, Draining: draining})
	return reason(err)
}

func (l *list) transfer(shard int64, id uint64) string {
	_, err := transfer(l.ctx(), &api.ClusterTransferRequest{Shard: shard, NodeID: id})
	return reason(err)
}

// looks compares the list with its text: a word for each node, and the choices.
func (l *list) looks(want string) {
	l.t.Helper()
	all, err := All(l.tx, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	var words []string
	for _, n := range all {
		w := fmt.Sprintf("%d=%s@%s.%d", n.NodeID, n.State, n.Address, n.Revision)
		if n.Draining {
			w += ",draining"
		}
		if n.Replaces != 0 {
			w += fmt.Sprintf(",for%d", n.Replaces)
		}
		words = append(words, w)
	}
	if got := strings.Join(words, " "); got != want {
		l.t.Errorf("the list is\n%s\nwant\n%s", got, want)
	}
}

func (l *list) chosen(want map[uint16]uint64) {
	l.t.Helper()
	got, err := Chosen(l.tx, 0)
	if err != nil || !maps.Equal(got, want) {
		l.t.Errorf("chosen are %v (%v), want %v", got, err, want)
	}
}

func (l *list) want(got, want, what string) {
	l.t.Helper()
	if got != want {
		l.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// first begins a cluster with node 1.
func (l *list) first() *list {
	l.t.Helper()
	r, _ := l.join(JoinRequest{Node: 1, Address: "a1:1", URL: "u1", First: true})
	l.want(r, "", "the first node")
	return l
}

// joined adds nodes and lets them join.
func (l *list) joined(ids ...uint64) *list {
	l.t.Helper()
	for _, id := range ids {
		r, _ := l.add(id, fmt.Sprintf("a%d:1", id))
		l.want(r, "", "add")
		r, _ = l.join(JoinRequest{Node: id, Address: fmt.Sprintf("a%d:1", id), URL: "u"})
		l.want(r, "", "join")
	}
	return l
}

func TestAClusterBeginsWithOneNodeAndNoOtherIsEverTheFirst(t *testing.T) {
	l := newList(t)
	r, _ := l.add(2, "a2:1")
	l.want(r, "UnsupportedCapability/no_cluster", "adding to a store that runs alone")
	l.want(l.remove(1), "UnsupportedCapability/no_cluster", "removing from it")
	l.want(l.drain(1, true), "UnsupportedCapability/no_cluster", "draining it")
	r, _ = l.replace(1, 2, "a2:1")
	l.want(r, "UnsupportedCapability/no_cluster", "replacing it")
	r, _ = l.join(JoinRequest{Node: 1, Address: "a1:1"})
	l.want(r, "NotFound/unknown_node", "joining a store that runs alone")
	l.looks("")
	l.first()
	l.looks("1=joined@a1:1.1")
	l.first() // it lost its power before the answer came
	l.looks("1=joined@a1:1.1")
	r, n := l.join(JoinRequest{Node: 1, Address: "b1:1", URL: "v1", First: true})
	if l.want(r, "", "the first node at another address"); n == nil || n.URL != "v1" {
		t.Errorf("it is %+v", n)
	}
	l.looks("1=joined@b1:1.2")
	r, _ = l.join(JoinRequest{Node: 2, Address: "a2:1", First: true})
	l.want(r, "NotFound/unknown_node", "a second first node")
	l.looks("1=joined@b1:1.2")
}

func TestANodeIsInvitedOnceAndJoinsOnce(t *testing.T) {
	l := newList(t).first()
	for range 2 { // the same again changes nothing
		r, n := l.add(2, "a2:1")
		if l.want(r, "", "add"); n == nil || n.State != api.NodeInvited || n.Revision != 1 || n.URL != "" {
			t.Errorf("the answer is %+v", n)
		}
	}
	r, _ := l.add(2, "b2:1")
	l.want(r, "Conflict/node_known", "another address for an invited node")
	r, _ = l.join(JoinRequest{Node: 2, Address: "a2:1", Known: true})
	l.want(r, "Conflict/node_not_joined", "a node without an identity that says where it is")
	l.looks("1=joined@a1:1.1 2=invited@a2:1.1")
	r, n := l.join(JoinRequest{Node: 2, Address: "b2:1", URL: "u2"})
	if l.want(r, "", "join"); n == nil || n.URL != "u2" {
		t.Errorf("the answer is %+v", n)
	}
	l.looks("1=joined@a1:1.1 2=joined@b2:1.2")
	r, _ = l.join(JoinRequest{Node: 2, Address: "b2:1", URL: "u2"})
	l.want(r, "Conflict/node_joined", "a node that lost its disk")
	r, _ = l.add(2, "b2:1")
	l.want(r, "Conflict/node_known", "adding a node that has joined")
	r, _ = l.join(JoinRequest{Node: 2, Address: "b2:1", URL: "u2", Known: true})
	l.want(r, "", "a node that is where it was")
	l.looks("1=joined@a1:1.1 2=joined@b2:1.2")
	r, _ = l.join(JoinRequest{Node: 2, Address: "c2:1", URL: "u2", Known: true})
	l.want(r, "", "a node that has moved")
	r, _ = l.join(JoinRequest{Node: 3, Address: "a3:1"})
	l.want(r, "NotFound/unknown_node", "a node that nobody invited")
	r, _ = l.join(JoinRequest{Node: 3, Address: "a3:1", Known: true})
	l.want(r, "NotFound/unknown_node", "a node of another cluster")
	l.looks("1=joined@a1:1.1 2=joined@c2:1.3")
}

func TestThereAreAtMostSevenNodes(t *testing.T) {
	l := newList(t).first()
	for id := uint64(2); id <= 7; id++ {
		r, _ := l.add(id, fmt.Sprintf("a%d:1", id))
		l.want(r, "", fmt.Sprint("node ", id))
	}
	r, _ := l.add(8, "a8:1")
	l.want(r, "Conflict/too_many_nodes", "node 8")
	r, _ = l.add(7, "a7:1")
	l.want(r, "", "node 7 again")
	r, _ = l.join(JoinRequest{Node: 7, Address: "a7:1"})
	l.want(r, "", "node 7 joins")
	r, _ = l.replace(6, 9, "a9:1")
	l.want(r, "", "node 9 in the place of node 6")
	r, _ = l.add(8, "a8:1")
	l.want(r, "Conflict/too_many_nodes", "node 8 again")
	l.want(l.remove(5), "", "removing node 5")
	r, _ = l.add(8, "a8:1")
	l.want(r, "", "node 8 when there is room")
	r, _ = l.add(10, "a10:1")
	l.want(r, "Conflict/too_many_nodes", "node 10")
}

func TestARemovedNodeIsRefusedAndItsNumberIsNotUsedAgain(t *testing.T) {
	l := newList(t).first().joined(2)
	l.want(l.transfer(3, 2), "", "choosing node 2")
	l.want(l.transfer(4, 1), "", "choosing node 1")
	l.want(l.remove(2), "", "remove")
	l.chosen(map[uint16]uint64{4: 1})
	l.looks("1=joined@a1:1.1 2=removed@a2:1.3")
	l.want(l.remove(2), "NotFound/unknown_node", "removing it again")
	l.want(l.remove(9), "NotFound/unknown_node", "removing one that never was")
	l.want(l.drain(2, true), "NotFound/unknown_node", "draining it")
	l.want(l.transfer(3, 2), "NotFound/unknown_node", "choosing it")
	for _, known := range []bool{false, true} {
		r, _ := l.join(JoinRequest{Node: 2, Address: "a2:1", Known: known})
		l.want(r, "PermissionDenied/node_removed", "joining again")
	}
	r, _ := l.add(2, "a2:1")
	l.want(r, "Conflict/node_known", "adding it again")
	r, _ = l.replace(1, 2, "a2:1")
	l.want(r, "Conflict/node_known", "putting it in the place of another")
	l.looks("1=joined@a1:1.1 2=removed@a2:1.3")
}

func TestTheLastNodeThatHasJoinedStays(t *testing.T) {
	l := newList(t).first()
	r, _ := l.add(2, "a2:1")
	l.want(r, "", "add")
	l.want(l.remove(1), "Conflict/last_node", "removing it while another is only invited")
	r, _ = l.replace(1, 3, "a3:1")
	l.want(r, "Conflict/last_node", "replacing it")
	l.looks("1=joined@a1:1.1 2=invited@a2:1.1")
	l.want(l.remove(2), "", "taking an invitation back")
	l.joined(3)
	l.want(l.remove(1), "", "removing it when another has joined")
	l.want(l.remove(3), "Conflict/last_node", "removing the other")
	l.looks("1=removed@a1:1.2 2=removed@a2:1.2 3=joined@a3:1.2")
}

func TestANodeTakesThePlaceOfAnotherInOneStep(t *testing.T) {
	l := newList(t).first().joined(2, 3)
	l.want(l.transfer(1, 3), "", "choosing node 3")
	for range 2 { // the same again changes nothing
		r, n := l.replace(3, 4, "a4:1")
		if l.want(r, "", "replace"); n == nil || n.NodeID != 4 || n.Replaces != 3 || n.State != api.NodeInvited {
			t.Errorf("the answer is %+v", n)
		}
	}
	const replaced = "1=joined@a1:1.1 2=joined@a2:1.2 3=removed@a3:1.3 4=invited@a4:1.1,for3"
	l.looks(replaced)
	l.chosen(map[uint16]uint64{})
	for _, c := range []struct {
		id, by        uint64
		address, want string
	}{
		{3, 4, "b4:1", "Conflict/node_known"},
		{2, 4, "a4:1", "Conflict/node_known"},
		{3, 5, "a5:1", "NotFound/unknown_node"},
		{9, 5, "a5:1", "NotFound/unknown_node"},
		{2, 1, "a1:1", "Conflict/node_known"},
		{2, 2, "a2:1", "Conflict/node_known"},
	} {
		r, _ := l.replace(c.id, c.by, c.address)
		l.want(r, c.want, fmt.Sprintf("replace %d by %d at %s", c.id, c.by, c.address))
	}
	r, _ := l.add(4, "a4:1")
	l.want(r, "Conflict/node_known", "adding the one that takes a place")
	l.looks(replaced)
	r, _ = l.join(JoinRequest{Node: 4, Address: "a4:1", URL: "u4"})
	l.want(r, "", "join")
	l.looks("1=joined@a1:1.1 2=joined@a2:1.2 3=removed@a3:1.3 4=joined@a4:1.2,for3")
}

func TestADrainingNodeIsChosenForNothingAndTheSameAgainChangesNothing(t *testing.T) {
	l := newList(t).first().joined(2)
	l.want(l.transfer(1, 2), "", "choosing node 2")
	l.want(l.drain(2, false), "", "not draining")
	l.looks("1=joined@a1:1.1 2=joined@a2:1.2")
	l.want(l.drain(2, true), "", "draining")
	l.want(l.drain(2, true), "", "draining again")
	l.looks("1=joined@a1:1.1 2=joined@a2:1.3,draining")
	l.chosen(map[uint16]uint64{1: 2}) // it leads that shard again when it is back
	l.want(l.transfer(2, 2), "Conflict/draining", "choosing it")
	l.want(l.drain(2, false), "", "back")
	l.want(l.transfer(2, 2), "", "choosing it when it is back")
	l.chosen(map[uint16]uint64{1: 2, 2: 2})
}

func TestTheLeaderOfAShardIsChosenAndForgotten(t *testing.T) {
	l := newList(t)
	l.want(l.transfer(1, 1), "UnsupportedCapability/no_cluster", "choosing on a store that runs alone")
	l.first().joined(2)
	r, _ := l.add(3, "a3:1")
	l.want(r, "", "add")
	l.want(l.transfer(0, 3), "Conflict/not_joined", "choosing one that was only invited")
	l.want(l.transfer(0, 0), "", "forgetting nothing")
	l.chosen(map[uint16]uint64{})
	l.want(l.transfer(0, 1), "", "choosing for the catalog")
	l.want(l.transfer(64, 2), "", "choosing for the last shard")
	l.want(l.transfer(0, 2), "", "choosing another")
	l.chosen(map[uint16]uint64{0: 2, 64: 2})
	l.want(l.transfer(0, 0), "", "forgetting")
	l.chosen(map[uint16]uint64{64: 2})
}

func TestARestoredStoreIsNoCluster(t *testing.T) {
	l := newList(t).first().joined(2)
	l.want(l.transfer(1, 2), "", "choosing")
	if err := Forget(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.looks("")
	l.chosen(map[uint16]uint64{})
	l.first()
	l.looks("1=joined@a1:1.1")
}

func TestAnAddressHasAHostAndAPort(t *testing.T) {
	l := newList(t).first()
	for address, good := range map[string]bool{
		"node2.example:7601": true, "10.0.0.2:1": true, "n:65535": true, "[::1]:7601": true, "[fe80::1]:7601": true,
		"node2.example": false, "node2.example:": false, ":7601": false, "n:0": false, "n:65536": false, "n:x": false, "n:-1": false, "n:+1": false,
		"::1:7601": false, "[::1:7601": false, "::1]:7601": false, "[]:7601": false, "http://n:7601": false, "n:7601/x": false, "a b:1": false, "u@n:1": false, "": false,
	} {
		want := "Validation/invalid_field"
		if good {
			want = ""
		}
		r, n := l.add(2, address)
		l.want(r, want, address)
		r, _ = l.replace(1, 3, address)
		if !good {
			l.want(r, want, "replacing by "+address)
		}
		if n != nil {
			nodes.Delete(l.tx, nodeKey{0, 2})
		}
	}
}
