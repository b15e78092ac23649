package api

// QueuesRedrive delivers one dead letter again.
var QueuesRedrive = Define[QueuesRedriveRequest, QueuesRedriveResponse](Operation{
	Name: "queues.redrive", Number: 15, Kind: Command, Scope: PartitionScope, Capability: CapDeadLettersRedrive,
	Summary: "Deliver one dead letter again",
	Doc: "Gives the dead letter a new delivery generation with its attempts at zero, ready now or at notBefore. " +
		"Old tokens no longer hold. A message that is not a dead letter is a Conflict. inboxExpired warns that the message " +
		"is older than inbox records are kept: then nothing remembers whether a handler has processed it before.",
})

// QueuesRedriveRequest names one dead letter.
type QueuesRedriveRequest struct {
	CommandID            string  `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Lane                 LaneRef `json:"lane" cbor:"2,keyasint" doc:"queue of the message"`
	MessageID            string  `json:"messageId" cbor:"3,keyasint" format:"identifier" doc:"id of the message"`
	ExpectedStateVersion uint64  `json:"expectedStateVersion,omitzero" cbor:"4,keyasint,omitempty" minimum:"1" doc:"state version the message must have; not compared when absent"`
	NotBefore            Time    `json:"notBefore,omitzero" cbor:"5,keyasint,omitempty" doc:"not delivered before this instant"`
}

// QueuesRedriveResponse is where the message is now.
type QueuesRedriveResponse struct {
	Receipt            Receipt      `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	MessageID          string       `json:"messageId" cbor:"2,keyasint" doc:"id of the message"`
	State              MessageState `json:"state" cbor:"3,keyasint" enum:"scheduled,ready,leased,acked,deadLettered,pendingDeadLetter,expired,cancelled" doc:"where the message is now"`
	StateVersion       uint64       `json:"stateVersion" cbor:"4,keyasint" doc:"new state version of the message"`
	DeliveryGeneration uint64       `json:"deliveryGeneration" cbor:"5,keyasint" doc:"new delivery generation of the message"`
	InboxExpired       bool         `json:"inboxExpired,omitzero" cbor:"6,keyasint,omitempty" doc:"the message is older than inbox records are kept (30 days): a handler that processed it under this id before is not recognised and its effects are applied again"`
}

// TargetPartition is the lane's partition.
func (r *QueuesRedriveRequest) TargetPartition() PartitionRef { return r.Lane.Partition }

// GetCommandID is the caller's identity of the write.
func (r *QueuesRedriveRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *QueuesRedriveRequest) SetCommandID(id string) { r.CommandID = id }

func (r *QueuesRedriveRequest) resourceName() string { return r.Lane.Queue }
