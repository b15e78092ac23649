package api

// SubscriptionsPause stops the claims of a group.
var SubscriptionsPause = Define[SubscriptionsPauseRequest, SubscriptionsPauseResponse](Operation{
	Name: "subscriptions.pause", Number: 32, Kind: Command, Scope: PartitionScope, Capability: CapGroupsManage,
	Summary: "Stop the claims of a subscription group; leases in flight may still be completed",
	Doc:     "Receives answer DispatchPaused from now on, and those that wait end. Acknowledgements and renewals go on. A paused group still pins its source.",
})

// SubscriptionsPauseRequest names a group at a generation.
type SubscriptionsPauseRequest struct {
	CommandID          string   `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group              GroupRef `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	ExpectedGeneration uint64   `json:"expectedGeneration" cbor:"3,keyasint" minimum:"1" doc:"generation the group must be at"`
}

// SubscriptionsPauseResponse is where the group stands.
type SubscriptionsPauseResponse struct {
	Receipt Receipt    `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	State   GroupState `json:"state" cbor:"2,keyasint" doc:"where the group stands now"`
	Changed bool       `json:"changed" cbor:"3,keyasint" doc:"whether anything changed"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsPauseRequest) TargetPartition() PartitionRef { return r.Group.Source.Partition }

func (r *SubscriptionsPauseRequest) resourceName() string { return r.Group.Source.Resource }

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsPauseRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsPauseRequest) SetCommandID(id string) { r.CommandID = id }
