package api

// SubscriptionsDeadLettersDiscard removes one dead letter of a group.
var SubscriptionsDeadLettersDiscard = Define[SubscriptionsDeadLettersDiscardRequest, SubscriptionsDeadLettersDiscardResponse](Operation{
	Name: "subscriptions.deadletters.discard", Number: 42, Kind: Command, Scope: PartitionScope, Capability: CapGroupsManage, Destructive: true,
	Summary: "Remove one dead letter of a subscription group for good",
	Doc:     "The copy of the event is removed; the event itself stays in the source as long as that keeps it.",
})

// SubscriptionsDeadLettersDiscardRequest names one dead letter.
type SubscriptionsDeadLettersDiscardRequest struct {
	CommandID       string   `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group           GroupRef `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	Position        uint64   `json:"position" cbor:"3,keyasint" minimum:"1" doc:"place in the source"`
	ExpectedVersion uint64   `json:"expectedVersion,omitzero" cbor:"4,keyasint,omitempty" minimum:"1" doc:"version the dead letter must have; not compared when absent"`
}

// SubscriptionsDeadLettersDiscardResponse is what became of it.
type SubscriptionsDeadLettersDiscardResponse struct {
	Receipt  Receipt `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Position uint64  `json:"position" cbor:"2,keyasint" doc:"place in the source"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsDeadLettersDiscardRequest) TargetPartition() PartitionRef {
	return r.Group.Source.Partition
}

func (r *SubscriptionsDeadLettersDiscardRequest) resourceName() string {
	return r.Group.Source.Resource
}

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsDeadLettersDiscardRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsDeadLettersDiscardRequest) SetCommandID(id string) { r.CommandID = id }
