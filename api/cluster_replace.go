package api

// ClusterReplace puts a new node in the place of another one.
var ClusterReplace = Define[ClusterReplaceRequest, ClusterReplaceResponse](Operation{
	Name: "cluster.replace", Number: 52, Kind: Command, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "Put a new node in the place of a lost one",
	Doc: "Removes one node and invites another in one step, so that no moment counts both as missing. The old one is dropped by each shard " +
		"after the new one votes there. Administrators only.",
	Destructive: true,
})

// ClusterReplaceRequest names both.
type ClusterReplaceRequest struct {
	CommandID string `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	NodeID    uint64 `json:"nodeId" cbor:"2,keyasint" minimum:"1" maximum:"999999" doc:"number of the node that is lost"`
	By        uint64 `json:"by" cbor:"3,keyasint" minimum:"1" maximum:"999999" doc:"number of the new node, which none ever had"`
	Address   string `json:"address" cbor:"4,keyasint" minLength:"1" maxLength:"256" doc:"host:port at which other nodes reach the new one"`
}

// ClusterReplaceResponse is the node as it is in the list now. The shards follow by
// themselves: see cluster.status.
type ClusterReplaceResponse struct {
	Receipt Receipt     `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Node    ClusterNode `json:"node" cbor:"2,keyasint" doc:"the new node"`
}

// GetCommandID is the caller's identity of the write.
func (r *ClusterReplaceRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *ClusterReplaceRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is none: the request speaks of the whole store.
func (r *ClusterReplaceRequest) TargetDatabase() (tenant, database string) { return "", "" }
