package api

// SubscriptionsSkip finishes one position without delivering it.
var SubscriptionsSkip = Define[SubscriptionsSkipRequest, SubscriptionsSkipResponse](Operation{
	Name: "subscriptions.skip", Number: 34, Kind: Command, Scope: PartitionScope, Capability: CapGroupsManage, Destructive: true,
	Summary: "Finish exactly one position of a subscription group, with a reason",
	Doc: "For an event that no handler can take. The position must be issued and unfinished, or be the next one; a lease on it is ended. " +
		"The reason and the principal are kept with the group (the last 16 skips) and in the change's receipt.",
})

// SubscriptionsSkipRequest names one position.
type SubscriptionsSkipRequest struct {
	CommandID          string   `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group              GroupRef `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	ExpectedGeneration uint64   `json:"expectedGeneration" cbor:"3,keyasint" minimum:"1" doc:"generation the group must be at"`
	Position           uint64   `json:"position" cbor:"4,keyasint" minimum:"1" doc:"the position to finish"`
	Reason             string   `json:"reason" cbor:"5,keyasint" minLength:"1" maxLength:"1024" doc:"why, for people"`
}

// SkippedPosition records one skip.
type SkippedPosition struct {
	Position  uint64 `json:"position" cbor:"1,keyasint" doc:"the position"`
	Reason    string `json:"reason" cbor:"2,keyasint" doc:"why it was skipped"`
	Principal string `json:"principal" cbor:"3,keyasint" doc:"who skipped it"`
	At        Time   `json:"at" cbor:"4,keyasint" doc:"logged time of the skip"`
}

// SubscriptionsSkipResponse is where the group stands.
type SubscriptionsSkipResponse struct {
	Receipt Receipt    `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	State   GroupState `json:"state" cbor:"2,keyasint" doc:"where the group stands now"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsSkipRequest) TargetPartition() PartitionRef { return r.Group.Source.Partition }

func (r *SubscriptionsSkipRequest) resourceName() string { return r.Group.Source.Resource }

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsSkipRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsSkipRequest) SetCommandID(id string) { r.CommandID = id }
