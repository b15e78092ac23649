package api

// SubscriptionsDelete removes a group.
var SubscriptionsDelete = Define[SubscriptionsDeleteRequest, SubscriptionsDeleteResponse](Operation{
	Name: "subscriptions.delete", Number: 35, Kind: Command, Scope: PartitionScope, Capability: CapGroupsManage, Destructive: true,
	Summary: "Delete a subscription group, its window and its dead letters",
	Doc: "The group's pin on its source ends. confirm must be its checkpoint, so that nobody deletes a group that is further on, or " +
		"less far, than they believe. Events are not touched. A group of the same name starts anew.",
})

// SubscriptionsDeleteRequest names a group.
type SubscriptionsDeleteRequest struct {
	CommandID string   `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group     GroupRef `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	Confirm   *uint64  `json:"confirm" cbor:"3,keyasint" doc:"the group's checkpoint; also where that is 0"`
}

// SubscriptionsDeleteResponse is what was removed.
type SubscriptionsDeleteResponse struct {
	Receipt     Receipt `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	DeadLetters int64   `json:"deadLetters" cbor:"2,keyasint" doc:"dead letters removed with the group"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsDeleteRequest) TargetPartition() PartitionRef { return r.Group.Source.Partition }

func (r *SubscriptionsDeleteRequest) resourceName() string { return r.Group.Source.Resource }

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsDeleteRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsDeleteRequest) SetCommandID(id string) { r.CommandID = id }
