package api

// SubscriptionsDeadLettersRedrive delivers one dead letter of a group again.
var SubscriptionsDeadLettersRedrive = Define[SubscriptionsDeadLettersRedriveRequest, SubscriptionsDeadLettersRedriveResponse](Operation{
	Name: "subscriptions.deadletters.redrive", Number: 41, Kind: Command, Scope: PartitionScope, Capability: CapDeadLettersRedrive,
	Summary: "Deliver one dead letter of a subscription group again",
	Doc: "The event is delivered again under its own position with its attempts at zero; the checkpoint does not move, and the dead letter " +
		"is removed when the delivery is acknowledged. A held position is redriven the same way, within the window. " +
		"inboxExpired warns that inbox records of that age are forgotten, so its effects may be applied a second time.",
})

// SubscriptionsDeadLettersRedriveRequest names one dead letter.
type SubscriptionsDeadLettersRedriveRequest struct {
	CommandID       string   `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group           GroupRef `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	Position        uint64   `json:"position" cbor:"3,keyasint" minimum:"1" doc:"place in the source"`
	ExpectedVersion uint64   `json:"expectedVersion,omitzero" cbor:"4,keyasint,omitempty" minimum:"1" doc:"version the dead letter must have; not compared when absent"`
}

// SubscriptionsDeadLettersRedriveResponse is what became of it.
type SubscriptionsDeadLettersRedriveResponse struct {
	Receipt      Receipt       `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Position     uint64        `json:"position" cbor:"2,keyasint" doc:"place in the source"`
	State        PositionState `json:"state" cbor:"3,keyasint" enum:"ready,blocked,leased,waiting" doc:"where it is now"`
	InboxExpired bool          `json:"inboxExpired,omitzero" cbor:"4,keyasint,omitempty" doc:"the event is older than inbox records are kept: nothing remembers whether a handler has processed it"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsDeadLettersRedriveRequest) TargetPartition() PartitionRef {
	return r.Group.Source.Partition
}

func (r *SubscriptionsDeadLettersRedriveRequest) resourceName() string {
	return r.Group.Source.Resource
}

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsDeadLettersRedriveRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsDeadLettersRedriveRequest) SetCommandID(id string) { r.CommandID = id }
