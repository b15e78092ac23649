package api

// QueuesList lists messages.
var QueuesList = Define[QueuesListRequest, QueuesListResponse](Operation{
	Name: "queues.list", Number: 12, Kind: Query, Scope: PartitionScope, Capability: CapQueuesInspect,
	Summary: "List the messages of a queue, all or those in one state",
	Doc:     "Answers a page of messages without payloads, and a cursor while there may be more. It claims nothing.",
})

// QueuesListRequest asks for one page.
type QueuesListRequest struct {
	Lane     LaneRef      `json:"lane" cbor:"1,keyasint" doc:"queue to list"`
	State    MessageState `json:"state,omitzero" cbor:"2,keyasint,omitempty" enum:"scheduled,ready,leased,acked,deadLettered,pendingDeadLetter,expired,cancelled" doc:"only messages in this state"`
	Limit    int64        `json:"limit,omitzero" cbor:"3,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most messages of the page"`
	Cursor   string       `json:"cursor,omitzero" cbor:"4,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended"`
	MinToken *CommitToken `json:"minToken,omitzero" cbor:"5,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// QueuesListResponse is one page.
type QueuesListResponse struct {
	Messages []MessageInfo `json:"messages" cbor:"1,keyasint" doc:"messages without payloads"`
	Cursor   string        `json:"cursor,omitzero" cbor:"2,keyasint,omitempty" doc:"where to go on; absent at the end"`
	Examined Examined      `json:"examined" cbor:"3,keyasint" doc:"what the read cost"`
}

// TargetPartition is the lane's partition.
func (r *QueuesListRequest) TargetPartition() PartitionRef { return r.Lane.Partition }

func (r *QueuesListRequest) resourceName() string { return r.Lane.Queue }
