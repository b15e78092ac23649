package api

// ClusterDrain moves the leaderships of a node elsewhere.
var ClusterDrain = Define[ClusterDrainRequest, ClusterDrainResponse](Operation{
	Name: "cluster.drain", Number: 53, Kind: Command, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "Move a node's leaderships away, for maintenance",
	Doc: "A draining node keeps its copies and votes, hands every leadership on and gets none, until it is called with draining false. " +
		"cluster.status shows when it leads nothing any more and can be stopped without an election. Administrators only.",
})

// ClusterDrainRequest names the node.
type ClusterDrainRequest struct {
	CommandID string `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	NodeID    uint64 `json:"nodeId" cbor:"2,keyasint" minimum:"1" maximum:"999999" doc:"number of the node"`
	Draining  bool   `json:"draining" cbor:"3,keyasint" doc:"whether it gives its leaderships away; false lets it lead again"`
}

// ClusterDrainResponse is the node as it is in the list now. The shards follow by
// themselves: see cluster.status.
type ClusterDrainResponse struct {
	Receipt Receipt     `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Node    ClusterNode `json:"node" cbor:"2,keyasint" doc:"the node"`
}

// GetCommandID is the caller's identity of the write.
func (r *ClusterDrainRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *ClusterDrainRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is none: the request speaks of the whole store.
func (r *ClusterDrainRequest) TargetDatabase() (tenant, database string) { return "", "" }
