package api

// NodeState is where a node of a cluster stands.
type NodeState string

// The states of a node. One that was removed keeps its id for good: ids are never
// used again, since what a node once voted for must not be taken for another's vote.
const (
	NodeInvited NodeState = "invited"
	NodeJoined  NodeState = "joined"
	NodeRemoved NodeState = "removed"
)

// ClusterNode is one node in the list of members.
type ClusterNode struct {
	NodeID   uint64    `json:"nodeId" cbor:"1,keyasint" doc:"number of the node; never used again once it was given out"`
	Address  string    `json:"address" cbor:"2,keyasint" doc:"host:port at which other nodes reach it"`
	URL      string    `json:"url,omitzero" cbor:"3,keyasint,omitempty" doc:"URL at which callers reach it"`
	State    NodeState `json:"state" cbor:"4,keyasint" enum:"invited,joined,removed" doc:"invited until it has fetched the identity of the store, then joined; removed for good"`
	Draining bool      `json:"draining,omitzero" cbor:"5,keyasint,omitempty" doc:"it gives its leaderships away and gets none"`
	Replaces uint64    `json:"replaces,omitzero" cbor:"6,keyasint,omitempty" doc:"node that it was added in place of"`
	Revision uint64    `json:"revision" cbor:"7,keyasint" doc:"rises with every change of this node"`
}
