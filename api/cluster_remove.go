package api

// ClusterRemove takes a node out of the list of members.
var ClusterRemove = Define[ClusterRemoveRequest, ClusterRemoveResponse](Operation{
	Name: "cluster.remove", Number: 51, Kind: Command, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "Remove a node from the cluster for good",
	Doc: "Every shard gives its leadership there away and drops it; it is refused from then on, and its number is never used again. " +
		"A shard whose other nodes are no majority that can be reached keeps it until they are. Refused for the last node that has joined. To take a dead node's place, use cluster.replace. Administrators only.",
	Destructive: true,
})

// ClusterRemoveRequest names the node.
type ClusterRemoveRequest struct {
	CommandID string `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	NodeID    uint64 `json:"nodeId" cbor:"2,keyasint" minimum:"1" maximum:"999999" doc:"number of the node"`
}

// ClusterRemoveResponse is the node as it is in the list now. The shards follow by
// themselves: see cluster.status.
type ClusterRemoveResponse struct {
	Receipt Receipt     `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Node    ClusterNode `json:"node" cbor:"2,keyasint" doc:"the node"`
}

// GetCommandID is the caller's identity of the write.
func (r *ClusterRemoveRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *ClusterRemoveRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is none: the request speaks of the whole store.
func (r *ClusterRemoveRequest) TargetDatabase() (tenant, database string) { return "", "" }
