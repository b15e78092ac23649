package api

// QueuesInspect reads one message.
var QueuesInspect = Define[QueuesInspectRequest, QueuesInspectResponse](Operation{
	Name: "queues.inspect", Number: 11, Kind: Query, Scope: PartitionScope, Capability: CapQueuesInspect,
	Summary: "See everything about one message",
	Doc: "Answers the message's state, counters and deadlines, and its payload when asked for and still stored. " +
		"It claims nothing. A message that is unknown or pruned is NotFound.",
})

// QueuesInspectRequest names one message.
type QueuesInspectRequest struct {
	Lane           LaneRef      `json:"lane" cbor:"1,keyasint" doc:"queue of the message"`
	MessageID      string       `json:"messageId" cbor:"2,keyasint" format:"identifier" doc:"id of the message"`
	IncludePayload bool         `json:"includePayload,omitzero" cbor:"3,keyasint,omitempty" doc:"answer the payload too, without the fields the caller may not see"`
	MinToken       *CommitToken `json:"minToken,omitzero" cbor:"4,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// QueuesInspectResponse is the message.
type QueuesInspectResponse struct {
	Message MessageInfo `json:"message" cbor:"1,keyasint" doc:"the message"`
}

// TargetPartition is the lane's partition.
func (r *QueuesInspectRequest) TargetPartition() PartitionRef { return r.Lane.Partition }

func (r *QueuesInspectRequest) resourceName() string { return r.Lane.Queue }
