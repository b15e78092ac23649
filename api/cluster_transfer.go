package api

// ClusterTransfer says which node should lead a shard.
var ClusterTransfer = Define[ClusterTransferRequest, ClusterTransferResponse](Operation{
	Name: "cluster.transfer", Number: 54, Kind: Command, Scope: CatalogScope, Capability: CapSecurityManage,
	Summary: "Choose the node that leads a shard",
	Doc: "The leadership moves there as soon as that node has caught up, and comes back to it after it was away. Node 0 forgets the choice: " +
		"leaderships are then spread evenly. Administrators only.",
})

// ClusterTransferRequest names the shard and the node.
type ClusterTransferRequest struct {
	CommandID string `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Shard     int64  `json:"shard" cbor:"2,keyasint" minimum:"0" maximum:"64" doc:"number of the shard; 0 is the catalog's"`
	NodeID    uint64 `json:"nodeId" cbor:"3,keyasint" maximum:"999999" doc:"node that should lead it; 0 for any"`
}

// ClusterTransferResponse is the choice as it is stored.
type ClusterTransferResponse struct {
	Receipt Receipt `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Shard   int64   `json:"shard" cbor:"2,keyasint" doc:"number of the shard"`
	NodeID  uint64  `json:"nodeId" cbor:"3,keyasint" doc:"node that should lead it; 0 for any"`
}

// GetCommandID is the caller's identity of the write.
func (r *ClusterTransferRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *ClusterTransferRequest) SetCommandID(id string) { r.CommandID = id }

// TargetDatabase is none: the request speaks of the whole store.
func (r *ClusterTransferRequest) TargetDatabase() (tenant, database string) { return "", "" }
