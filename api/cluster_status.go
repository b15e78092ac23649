package api

// ClusterStatus sums up all nodes.
var ClusterStatus = Define[ClusterStatusRequest, ClusterStatusResponse](Operation{
	Name: "cluster.status", Number: 55, Kind: Query, Scope: NodeScope, Capability: CapDiagnose,
	Summary: "See every node of the cluster and who leads what",
	Doc: "The node that gets it asks the others, for at most two seconds. What it says of members is what it knows itself, so it answers " +
		"without a majority too. On a store that runs alone it answers no nodes.",
})

// ClusterStatusRequest asks for the state of the cluster.
type ClusterStatusRequest struct{}

// ClusterReplica is what a node says of its copy of one shard.
type ClusterReplica struct {
	Shard    uint32 `json:"shard" cbor:"1,keyasint" doc:"number of the shard"`
	Leader   uint64 `json:"leader,omitzero" cbor:"2,keyasint,omitempty" doc:"node that it takes for the leader; 0 is none"`
	Term     uint64 `json:"term" cbor:"3,keyasint" doc:"term of that leadership"`
	Learner  bool   `json:"learner,omitzero" cbor:"4,keyasint,omitempty" doc:"it does not vote yet"`
	Member   bool   `json:"member,omitzero" cbor:"5,keyasint,omitempty" doc:"the shard counts it among its members"`
	Position uint64 `json:"position" cbor:"6,keyasint" doc:"last applied command"`
	Digest   string `json:"digest" cbor:"7,keyasint" doc:"rolling digest at position, in hexadecimal"`
	Failure  string `json:"failure,omitzero" cbor:"8,keyasint,omitempty" doc:"why the copy stopped"`
}

// ClusterNodeStatus is one node and what it says of itself.
type ClusterNodeStatus struct {
	Node       ClusterNode      `json:"node" cbor:"1,keyasint" doc:"its place in the list of members"`
	Reachable  bool             `json:"reachable" cbor:"2,keyasint" doc:"it answered"`
	Ready      bool             `json:"ready" cbor:"3,keyasint" doc:"it accepts work"`
	Reason     string           `json:"reason,omitzero" cbor:"4,keyasint,omitempty" doc:"why it is not ready, or was not reached"`
	Clock      Time             `json:"clock,omitzero" cbor:"5,keyasint,omitempty" doc:"what its clock said when it answered"`
	Leads      int64            `json:"leads" cbor:"6,keyasint" doc:"shards that it leads"`
	Replicas   []ClusterReplica `json:"replicas,omitempty" cbor:"7,keyasint,omitempty" doc:"its copies of the shards"`
	SkewMillis int64            `json:"skewMillis,omitzero" cbor:"8,keyasint,omitempty" doc:"how far its clock is ahead of the asked node's, in milliseconds, within half of the time that asking took"`
}

// ClusterStatusResponse is the state of the cluster.
type ClusterStatusResponse struct {
	Node  uint64              `json:"node,omitzero" cbor:"1,keyasint,omitempty" doc:"the node that was asked; 0 on a store that runs alone"`
	Nodes []ClusterNodeStatus `json:"nodes,omitempty" cbor:"2,keyasint,omitempty" doc:"every node that was not removed, and those that are on their way out"`
}
