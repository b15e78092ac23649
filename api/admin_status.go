package api

// AdminStatus sums up the node.
var AdminStatus = Define[AdminStatusRequest, AdminStatusResponse](Operation{
	Name: "admin.status", Number: 26, Kind: Query, Scope: NodeScope, Capability: CapDiagnose,
	Summary: "See the state of the node and its shards",
	Doc: "Answers the store's incarnation and format, and for each shard how far its log is applied and durable. " +
		"Two replicas with equal positions have equal digests.",
})

// AdminStatusRequest asks for the state of the node that gets it.
type AdminStatusRequest struct{}

// ShardStatus is the state of one shard.
type ShardStatus struct {
	Shard           uint32 `json:"shard" cbor:"1,keyasint" doc:"number of the shard"`
	Catalog         bool   `json:"catalog,omitzero" cbor:"2,keyasint,omitempty" doc:"it holds the catalog"`
	Position        uint64 `json:"position" cbor:"3,keyasint" doc:"last applied log entry"`
	DurablePosition uint64 `json:"durablePosition" cbor:"4,keyasint" doc:"last log entry that survives a power loss"`
	Digest          string `json:"digest" cbor:"5,keyasint" doc:"rolling digest of the state at position, in hexadecimal"`
	LoggedTime      Time   `json:"loggedTime,omitzero" cbor:"6,keyasint,omitempty" doc:"logged time of the last entry"`
	CatalogVersion  uint64 `json:"catalogVersion" cbor:"7,keyasint" doc:"catalog change the shard has reached"`
	Failure         string `json:"failure,omitzero" cbor:"8,keyasint,omitempty" doc:"why the shard stopped"`
}

// AdminStatusResponse is the state of the node.
type AdminStatusResponse struct {
	Version      string        `json:"version" cbor:"1,keyasint" doc:"version of the program"`
	Incarnation  string        `json:"incarnation" cbor:"2,keyasint" doc:"identity of the store's history"`
	Format       int64         `json:"format" cbor:"3,keyasint" doc:"version of the stored format"`
	Durability   Durability    `json:"durability" cbor:"4,keyasint" enum:"disk,quorumDisk,process" doc:"what receipts promise"`
	StartedAt    Time          `json:"startedAt" cbor:"5,keyasint" doc:"when the node was started"`
	UptimeMillis int64         `json:"uptimeMillis" cbor:"6,keyasint" doc:"how long it has been running"`
	Ready        bool          `json:"ready" cbor:"7,keyasint" doc:"whether it accepts work"`
	Reason       string        `json:"reason,omitzero" cbor:"8,keyasint,omitempty" doc:"why it is not ready"`
	Shards       []ShardStatus `json:"shards" cbor:"9,keyasint" doc:"state of each shard"`
	StoredBytes  int64         `json:"storedBytes" cbor:"10,keyasint" doc:"size of the store on disk"`
}
