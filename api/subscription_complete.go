package api

import "github.com/keyload/keyload/fault"

// SubscriptionsComplete finishes, returns or prolongs group deliveries.
var SubscriptionsComplete = Define[SubscriptionsCompleteRequest, SubscriptionsCompleteResponse](Operation{
	Name: "subscriptions.complete", Number: 29, Kind: Command, Scope: PartitionScope, Capability: CapGroupsConsume,
	Summary: "Acknowledge, refuse, renew or release group deliveries",
	Doc: "Each item has its own outcome; one bad token does not undo the others. ack finishes the position, and the checkpoint " +
		"moves over everything finished that follows it; nack returns it after a delay, or ends its attempts when terminal; " +
		"renew prolongs the lease; release returns it at once and does not count the attempt. A stale or expired lease changes nothing.",
})

// SubscriptionsCompleteRequest completes deliveries of one group.
type SubscriptionsCompleteRequest struct {
	CommandID string         `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Group     GroupRef       `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	Items     []CompleteItem `json:"items" cbor:"3,keyasint" minItems:"1" maxItems:"256" doc:"what to do with each delivery"`
}

// PositionResult is what became of one item. A refused item has an error and,
// where it is known and may be told, the position.
type PositionResult struct {
	Position   uint64        `json:"position,omitzero" cbor:"1,keyasint,omitempty" doc:"position of the event"`
	State      PositionState `json:"state,omitzero" cbor:"2,keyasint,omitempty" enum:"ready,leased,waiting,blocked,held,finished,deadLettered" doc:"where the position is now"`
	LeaseUntil Time          `json:"leaseUntil,omitzero" cbor:"3,keyasint,omitempty" doc:"renew: new deadline"`
	Token      string        `json:"token,omitzero" cbor:"4,keyasint,omitempty" doc:"renew: new token, which replaces the old one"`
	NotBefore  Time          `json:"notBefore,omitzero" cbor:"5,keyasint,omitempty" doc:"nack: when the next attempt is due"`
	Error      *fault.Error  `json:"error,omitzero" cbor:"6,keyasint,omitempty" doc:"why the item changed nothing"`
}

// SubscriptionsCompleteResponse is what became of the items.
type SubscriptionsCompleteResponse struct {
	Receipt    Receipt          `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Results    []PositionResult `json:"results" cbor:"2,keyasint" doc:"one result per item, in order"`
	Checkpoint uint64           `json:"checkpoint" cbor:"3,keyasint" doc:"the group's checkpoint after the command"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsCompleteRequest) TargetPartition() PartitionRef {
	return r.Group.Source.Partition
}

func (r *SubscriptionsCompleteRequest) resourceName() string { return r.Group.Source.Resource }

// GetCommandID is the caller's identity of the write.
func (r *SubscriptionsCompleteRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *SubscriptionsCompleteRequest) SetCommandID(id string) { r.CommandID = id }
