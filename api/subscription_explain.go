package api

// SubscriptionsExplain says why a position, or a group, is not being delivered.
var SubscriptionsExplain = Define[SubscriptionsExplainRequest, SubscriptionsExplainResponse](Operation{
	Name: "subscriptions.explain", Number: 37, Kind: Query, Scope: PartitionScope, Capability: CapTopicsRead,
	Summary: "Say why a position of a subscription group is not being delivered, and what will change that",
	Doc:     "Without a position it explains the lowest unfinished one, or the next. The answer is one reason and the time or act that removes it.",
})

// SubscriptionsExplainRequest names a position.
type SubscriptionsExplainRequest struct {
	Group    GroupRef     `json:"group" cbor:"1,keyasint" doc:"group and its source"`
	Position uint64       `json:"position,omitzero" cbor:"2,keyasint,omitempty" minimum:"1" doc:"the position; the lowest unfinished one when absent"`
	MinToken *CommitToken `json:"minToken,omitzero" cbor:"3,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// SubscriptionsExplainResponse is the explanation.
type SubscriptionsExplainResponse struct {
	Position    uint64        `json:"position" cbor:"1,keyasint" doc:"the position"`
	State       PositionState `json:"state" cbor:"2,keyasint" enum:"ready,leased,waiting,blocked,held,finished,deadLettered,pending,purged,afterTail" doc:"where the position is in its life"`
	Deliverable bool          `json:"deliverable" cbor:"3,keyasint" doc:"whether a receive may claim it now"`
	Reason      string        `json:"reason" cbor:"4,keyasint" doc:"stable word for what stands in the way, or ready"`
	Detail      string        `json:"detail" cbor:"5,keyasint" doc:"one sentence for a person"`
	Until       Time          `json:"until,omitzero" cbor:"6,keyasint,omitempty" doc:"when the reason ends by itself"`
	ChangedBy   string        `json:"changedBy,omitzero" cbor:"7,keyasint,omitempty" doc:"what ends it otherwise"`
	Row         *WindowRow    `json:"row,omitzero" cbor:"8,keyasint,omitempty" doc:"the row of the window it is in"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsExplainRequest) TargetPartition() PartitionRef { return r.Group.Source.Partition }

func (r *SubscriptionsExplainRequest) needs() []Need { return sourceNeeds(r.Group.Source) }
