package cli

import (
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
)

// trio is three nodes that hold two shards beside the catalog's: node 1 was asked.
func trio() *api.ClusterStatusResponse {
	r := &api.ClusterStatusResponse{Node: 1}
	for id, address := range []string{"one:7700", "two:7700", "three:7700"} {
		n := api.ClusterNodeStatus{
			Node:      api.ClusterNode{NodeID: uint64(id + 1), Address: address, State: api.NodeJoined, Revision: 2},
			Reachable: true, Ready: true, Leads: 1,
		}
		for shard := range uint32(3) {
			n.Replicas = append(n.Replicas, api.ClusterReplica{
				Shard: shard, Leader: uint64(shard + 1), Term: 4, Member: true, Position: 100, Digest: "d1",
			})
		}
		r.Nodes = append(r.Nodes, n)
	}
	return r
}

// down is what the node that was asked knows of one that does not answer.
func down(n *api.ClusterNodeStatus) {
	*n = api.ClusterNodeStatus{Node: n.Node, Reason: "connection refused"}
}

// ledBy makes the nodes that answer follow other leaders.
func ledBy(r *api.ClusterStatusResponse, leaders ...uint64) {
	for i := range r.Nodes {
		for shard := range r.Nodes[i].Replicas {
			r.Nodes[i].Replicas[shard].Leader = leaders[shard]
		}
	}
}

// newNode is one that has been told of, and has joined nothing.
func newNode(id uint64, state api.NodeState) api.ClusterNodeStatus {
	return api.ClusterNodeStatus{Node: api.ClusterNode{NodeID: id, Address: "new:7700", State: state, Revision: 1}}
}

func TestAStoreAloneSaysThatItIsNoCluster(t *testing.T) {
	equal(t, clusterText(&api.ClusterStatusResponse{}), "this store runs alone; it is no cluster (keyload cluster --help)\n")
}

func TestAClusterThatIsWholeIsShownWithoutAdvice(t *testing.T) {
	r := trio()
	r.Nodes[1].SkewMillis = -3
	r.Nodes[2].Replicas[1].Position = 98
	equal(t, clusterText(r), `
nodes: 3 (node 1 was asked)
  node  state   reachable  ready  leads  lag  skew   address
     1  joined  yes        yes        1    0  0 ms   one:7700
     2  joined  yes        yes        1    0  -3 ms  two:7700
     3  joined  yes        yes        1    2  0 ms   three:7700

shards: 3 (of each node: how many commands it is behind)
  shard  leader  term  node 1  node 2  node 3
      0       1     4  0       0       0
      1       2     4  0       0       2
      2       3     4  0       0       0

every node is reached, and every shard has a leader
`)
}

func TestANodeThatIsDownOneThatIsNewAndOneOnItsWayOutAreShown(t *testing.T) {
	r := trio()
	down(&r.Nodes[1])
	r.Nodes[1].Node.State = api.NodeRemoved
	ledBy(r, 1, 3, 3)
	r.Nodes = append(r.Nodes, newNode(4, api.NodeInvited))
	equal(t, clusterText(r), `
nodes: 4 (node 1 was asked)
  node  state    reachable  ready  leads  lag  skew  address
     1  joined   yes        yes    1      0    0 ms  one:7700
     2  removed  no                                  two:7700
     3  joined   yes        yes    1      0    0 ms  three:7700
     4  invited  no                                  new:7700

shards: 3 (of each node: how many commands it is behind)
  shard  leader  term  node 1  node 2  node 3  node 4
      0       1     4  0       ?       0       ?
      1       3     4  0       ?       0       ?
      2       3     4  0       ?       0       ?

node 2 is removed and on its way out
node 4 was invited and has not joined: start it
`)
}

func TestCopiesThatAreNotWhatTheyShouldBeAreShown(t *testing.T) {
	r := trio()
	r.Nodes[1].Replicas[0].Failure = "checksum of 000012.sst"
	r.Nodes[1].Replicas[1].Digest = "d2"
	r.Nodes[2].Replicas[0].Learner = true
	r.Nodes[2].Replicas[0].Position = 40
	r.Nodes[2].Replicas[1].Member = false
	r.Nodes[2].Replicas = r.Nodes[2].Replicas[:2]
	equal(t, clusterText(r), `
nodes: 3 (node 1 was asked)
  node  state   reachable  ready  leads  lag  skew  address
     1  joined  yes        yes        1    0  0 ms  one:7700
     2  joined  yes        yes        1    0  0 ms  two:7700
     3  joined  yes        yes        1   60  0 ms  three:7700

shards: 3 (of each node: how many commands it is behind)
  shard  leader  term  node 1  node 2   node 3
      0       1     4  0       stopped  learns, 60
      1       2     4  0       0        no member
      2       3     4  0       0        none

shard 0 on node 2 has stopped: checksum of 000012.sst
DIFFERENT: shard 1 is not the same on node 1 and node 2 at position 100; keep both directories, and check each of them (keyload check DIR)
`)
}

// notes are the lines below the tables.
func notes(r *api.ClusterStatusResponse) string {
	text := clusterText(r)
	return text[strings.LastIndex(text, "\n\n")+2:]
}

func TestWhatAPersonShouldDoIsSaid(t *testing.T) {
	for what, c := range map[string]struct {
		change func(r *api.ClusterStatusResponse)
		want   string
	}{
		"a node is down": {func(r *api.ClusterStatusResponse) { down(&r.Nodes[1]); ledBy(r, 1, 3, 3) }, `
node 2 cannot be reached (connection refused). If it is lost for good, put a new one in its place: keyload cluster replace 2 NEW ADDRESS
`},
		"a majority is down": {func(r *api.ClusterStatusResponse) { down(&r.Nodes[1]); down(&r.Nodes[2]); ledBy(r, 0, 0, 3) }, `
node 2 cannot be reached (connection refused)
node 3 cannot be reached (connection refused)
NO MAJORITY: of the nodes that vote 1 can be reached, and 2 must be; until then nothing is read or written. Start those that are down, with their disks
nobody leads shard 0, 1: a majority of its members must be up and reach each other
`},
		"a second node joined and does not vote yet": {func(r *api.ClusterStatusResponse) {
			r.Nodes = r.Nodes[:2]
			down(&r.Nodes[1])
			ledBy(r, 1, 1, 1)
		}, `
node 2 cannot be reached (connection refused). If it is lost for good, put a new one in its place: keyload cluster replace 2 NEW ADDRESS
`},
		"a node takes no work": {func(r *api.ClusterStatusResponse) { r.Nodes[2].Ready, r.Nodes[2].Reason = false, "the disk is full" }, `
node 3 takes no work: the disk is full
`},
		"nobody knows why": {func(r *api.ClusterStatusResponse) { r.Nodes[2].Ready = false }, `
node 3 takes no work: no reason is known
`},
		"a clock is off": {func(r *api.ClusterStatusResponse) { r.Nodes[2].SkewMillis = -60_000 }, `
node 3 has a clock that is -60000 ms off that of node 1: have one of them set right
`},
		"a node is drained": {func(r *api.ClusterStatusResponse) { r.Nodes[1].Node.Draining = true; ledBy(r, 1, 1, 3) }, `
node 2 leads nothing and can be stopped; when it is back: keyload cluster drain 2 --off
`},
		"a drained node leads still": {func(r *api.ClusterStatusResponse) { r.Nodes[1].Node.Draining = true }, `
every node is reached, and every shard has a leader
`},
		"all nodes are drained": {func(r *api.ClusterStatusResponse) {
			r.Nodes = r.Nodes[:1]
			r.Nodes[0].Node.Draining = true
		}, `
node 1 is draining, and no other node can lead now
`},
	} {
		t.Run(what, func(t *testing.T) {
			r := trio()
			c.change(r)
			equal(t, notes(r), c.want)
		})
	}
}
