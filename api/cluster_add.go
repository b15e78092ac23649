package api

// ClusterAdd puts a node into the list of members.
var ClusterAdd = Define[ClusterAddRequest, ClusterAddResponse](Operation{
	Name: "cluster.add", Number: 50, Kind: Command, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "Invite a node into the cluster",
	Doc: "The node may then be started with an empty directory: it fetches the identity of the store, gets every shard as a learner, " +
		"and becomes a voter of each once it has caught up. Give a number that no node of this cluster ever had: one whose disk was lost " +
		"is a new node. At most 7 nodes are members at once. Administrators only. The same again changes nothing.",
})

// ClusterAddRequest names the node.
type ClusterAddRequest struct {
	CommandID string `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	NodeID    uint64 `json:"nodeId" cbor:"2,keyasint" minimum:"1" maximum:"999999" doc:"number of the new node"`
	Address   string `json:"address" cbor:"3,keyasint" minLength:"1" maxLength:"256" doc:"host:port at which other nodes reach it"`
}

// ClusterAddResponse is the node as it is in the list now. The shards follow by
// themselves: see cluster.status.
type ClusterAddResponse struct {
	Receipt Receipt     `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Node    ClusterNode `json:"node" cbor:"2,keyasint" doc:"the node"`
}

// GetCommandID is the caller's identity of the write.
func (r *ClusterAddRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *ClusterAddRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is none: the request speaks of the whole store.
func (r *ClusterAddRequest) TargetDatabase() (tenant, database string) { return "", "" }
