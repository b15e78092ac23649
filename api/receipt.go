package api

// Durability says what a receipt promises.
type Durability string

// The levels of durability.
const (
	DurableDisk    Durability = "disk"       // synced on this node's disk
	DurableQuorum  Durability = "quorumDisk" // synced on the disks of a majority
	DurableProcess Durability = "process"    // for tests: survives the process, not a power loss
)

// CommitToken names a point in the history of one partition. A read that asks
// for it sees at least everything up to that point.
type CommitToken struct {
	Incarnation    string       `json:"incarnation" cbor:"1,keyasint" format:"uuid" doc:"history of the store the token belongs to"`
	Partition      PartitionRef `json:"partition,omitzero" cbor:"2,keyasint" doc:"partition the command was committed in; absent for commands of the catalog"`
	Position       uint64       `json:"position" cbor:"3,keyasint" minimum:"1" doc:"position in the log that evaluates the partition"`
	OwnershipEpoch uint64       `json:"ownershipEpoch,omitzero" cbor:"4,keyasint,omitempty" doc:"rises when another node takes over the partition"`
}

// Receipt is the head of every command's response. It is stored with the
// command's effects and answered again, byte for byte, to every retry.
type Receipt struct {
	CommandID   string      `json:"commandId" cbor:"1,keyasint" doc:"the caller's identity of the write"`
	Token       CommitToken `json:"token" cbor:"2,keyasint" doc:"where the command was committed"`
	CommittedAt Time        `json:"committedAt" cbor:"3,keyasint" doc:"logged time of the command"`
	Durability  Durability  `json:"durability" cbor:"4,keyasint" enum:"disk,quorumDisk,process" doc:"what was safe when the receipt was given"`
}

// Examined says how much a read looked at, and so what it cost.
type Examined struct {
	Records int64 `json:"records" cbor:"1,keyasint" doc:"records looked at"`
	Bytes   int64 `json:"bytes" cbor:"2,keyasint" doc:"bytes looked at"`
}
