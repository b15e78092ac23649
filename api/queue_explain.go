package api

// QueuesExplain says why a message is not being delivered.
var QueuesExplain = Define[QueuesExplainRequest, QueuesExplainResponse](Operation{
	Name: "queues.explain", Number: 14, Kind: Query, Scope: PartitionScope, Capability: CapQueuesInspect,
	Summary: "Say why a message is not being delivered, and what will change that",
	Doc: "Answers whether the next receive with room for it could claim the message, and if not the one reason that " +
		"stands in the way and the time or event that removes it.",
})

// QueuesExplainRequest names one message.
type QueuesExplainRequest struct {
	Lane      LaneRef      `json:"lane" cbor:"1,keyasint" doc:"queue of the message"`
	MessageID string       `json:"messageId" cbor:"2,keyasint" format:"identifier" doc:"id of the message"`
	MinToken  *CommitToken `json:"minToken,omitzero" cbor:"3,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// QueuesExplainResponse is the explanation.
type QueuesExplainResponse struct {
	MessageID   string       `json:"messageId" cbor:"1,keyasint" doc:"id of the message"`
	State       MessageState `json:"state" cbor:"2,keyasint" enum:"scheduled,ready,leased,acked,deadLettered,pendingDeadLetter,expired,cancelled" doc:"where the message is in its life"`
	Deliverable bool         `json:"deliverable" cbor:"3,keyasint" doc:"whether a receive may claim it now"`
	Reason      string       `json:"reason" cbor:"4,keyasint" doc:"stable word for what stands in the way, or ready"`
	Detail      string       `json:"detail" cbor:"5,keyasint" doc:"one sentence for a person"`
	Until       Time         `json:"until,omitzero" cbor:"6,keyasint,omitempty" doc:"when the reason ends by itself"`
	ChangedBy   string       `json:"changedBy,omitzero" cbor:"7,keyasint,omitempty" doc:"what ends it otherwise"`
	ReadyBefore int64        `json:"readyBefore,omitzero" cbor:"8,keyasint,omitempty" doc:"ready messages that come first, counted up to 1,000"`
}

// TargetPartition is the lane's partition.
func (r *QueuesExplainRequest) TargetPartition() PartitionRef { return r.Lane.Partition }

func (r *QueuesExplainRequest) resourceName() string { return r.Lane.Queue }
