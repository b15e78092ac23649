package api

// SubscriptionsResume lets a group deliver again.
var SubscriptionsResume = Define[SubscriptionsResumeRequest, SubscriptionsResumeResponse](Operation{
	Name: "subscriptions.resume", Number: 33, Kind: Command, Scope: PartitionScope, Capability: CapGroupsManage,
	Summary: "Let a paused subscription group deliver again",
	Doc:     "Clears the failure that paused the group, if one did. Claims go on from the checkpoint and the window as they are.",
})

// SubscriptionsResumeRequest names a group at a generation.
type SubscriptionsResumeRequest struct {
	CommandID          string   `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group              GroupRef `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	ExpectedGeneration uint64   `json:"expectedGeneration" cbor:"3,keyasint" minimum:"1" doc:"generation the group must be at"`
}

// SubscriptionsResumeResponse is where the group stands.
type SubscriptionsResumeResponse struct {
	Receipt Receipt    `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	State   GroupState `json:"state" cbor:"2,keyasint" doc:"where the group stands now"`
	Changed bool       `json:"changed" cbor:"3,keyasint" doc:"whether anything changed"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsResumeRequest) TargetPartition() PartitionRef { return r.Group.Source.Partition }

func (r *SubscriptionsResumeRequest) resourceName() string { return r.Group.Source.Resource }

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsResumeRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsResumeRequest) SetCommandID(id string) { r.CommandID = id }
