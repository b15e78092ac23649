package api

// SubscriptionsConfigure creates a group or replaces its definition.
var SubscriptionsConfigure = Define[SubscriptionsConfigureRequest, SubscriptionsConfigureResponse](Operation{
	Name: "subscriptions.configure", Number: 27, Kind: Command, Scope: PartitionScope, Capability: CapGroupsManage,
	Summary: "Create a subscription group, or replace its definition while it is paused",
	Doc: "Without expectedGeneration it creates the group; an identical definition changes nothing, another one is a Conflict. " +
		"With it the group must exist, be at that generation and be paused; then the definition is replaced as a whole: the " +
		"window is dropped, the checkpoint stays, old tokens stop to hold, and after resume everything above the checkpoint is " +
		"evaluated by the new filter. Such an update has start: beginning and no cursor; it cannot move the checkpoint.",
})

// SubscriptionsConfigureRequest is the whole definition of a group.
type SubscriptionsConfigureRequest struct {
	CommandID          string          `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group              GroupRef        `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	Definition         GroupDefinition `json:"definition,omitzero" cbor:"3,keyasint" doc:"the whole definition; what is absent takes its default"`
	ExpectedGeneration uint64          `json:"expectedGeneration,omitzero" cbor:"4,keyasint,omitempty" minimum:"1" doc:"replace the definition of the group at this generation"`
}

// SubscriptionsConfigureResponse is the group as it is now.
type SubscriptionsConfigureResponse struct {
	Receipt        Receipt         `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	State          GroupState      `json:"state" cbor:"2,keyasint" doc:"where the group stands now"`
	Definition     GroupDefinition `json:"definition" cbor:"3,keyasint" doc:"the definition in force"`
	Changed        bool            `json:"changed" cbor:"4,keyasint" doc:"whether the group was created or its definition replaced"`
	EvaluatedAgain int64           `json:"evaluatedAgain,omitzero" cbor:"5,keyasint,omitempty" doc:"update: finished positions above the checkpoint that the new filter evaluates again"`
	SkippedBelow   int64           `json:"skippedBelow,omitzero" cbor:"6,keyasint,omitempty" doc:"update: positions up to the checkpoint that the filter before had passed over; the new one does not see them"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsConfigureRequest) TargetPartition() PartitionRef {
	return r.Group.Source.Partition
}

func (r *SubscriptionsConfigureRequest) resourceName() string { return r.Group.Source.Resource }

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsConfigureRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsConfigureRequest) SetCommandID(id string) { r.CommandID = id }
