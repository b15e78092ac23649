package api

// QueuesStatus sums up a lane.
var QueuesStatus = Define[QueuesStatusRequest, QueuesStatusResponse](Operation{
	Name: "queues.status", Number: 13, Kind: Query, Scope: PartitionScope, Capability: CapQueuesInspect,
	Summary: "See the counters, quotas and oldest message of a queue",
	Doc: "Answers how many messages are in each state, what they weigh against the policy, how old the oldest ready one is, " +
		"when the next is due, and totals since the lane began. The counters equal what a full scan would count.",
})

// QueuesStatusRequest names a lane.
type QueuesStatusRequest struct {
	Lane     LaneRef      `json:"lane" cbor:"1,keyasint" doc:"queue to sum up"`
	MinToken *CommitToken `json:"minToken,omitzero" cbor:"2,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// QueueCounts is how many messages are in each state. Finished ones are counted
// until they are pruned.
type QueueCounts struct {
	Scheduled         int64 `json:"scheduled" cbor:"1,keyasint" doc:"messages that wait for their time"`
	Ready             int64 `json:"ready" cbor:"2,keyasint" doc:"messages that may be delivered"`
	Leased            int64 `json:"leased" cbor:"3,keyasint" doc:"messages held by workers"`
	Acked             int64 `json:"acked" cbor:"4,keyasint" doc:"finished messages still remembered"`
	DeadLettered      int64 `json:"deadLettered" cbor:"5,keyasint" doc:"dead letters"`
	PendingDeadLetter int64 `json:"pendingDeadLetter" cbor:"6,keyasint" doc:"messages that wait for room among the dead letters"`
	Expired           int64 `json:"expired" cbor:"7,keyasint" doc:"expired messages still remembered"`
	Cancelled         int64 `json:"cancelled" cbor:"8,keyasint" doc:"cancelled messages still remembered"`
}

// QueueTotals is what happened since the lane began.
type QueueTotals struct {
	Enqueued     int64 `json:"enqueued" cbor:"1,keyasint" doc:"messages stored"`
	Delivered    int64 `json:"delivered" cbor:"2,keyasint" doc:"claims given"`
	Acked        int64 `json:"acked" cbor:"3,keyasint" doc:"messages finished"`
	Nacked       int64 `json:"nacked" cbor:"4,keyasint" doc:"deliveries refused by workers"`
	LeasesLost   int64 `json:"leasesLost" cbor:"5,keyasint" doc:"leases that ran out"`
	DeadLettered int64 `json:"deadLettered" cbor:"6,keyasint" doc:"messages that became dead letters"`
	Redriven     int64 `json:"redriven" cbor:"7,keyasint" doc:"dead letters delivered again"`
	Expired      int64 `json:"expired" cbor:"8,keyasint" doc:"messages whose time passed"`
	Cancelled    int64 `json:"cancelled" cbor:"9,keyasint" doc:"messages withdrawn"`
	Pruned       int64 `json:"pruned" cbor:"10,keyasint" doc:"finished messages no longer remembered"`
}

// QueuesStatusResponse sums up the lane.
type QueuesStatusResponse struct {
	Counts               QueueCounts `json:"counts" cbor:"1,keyasint" doc:"messages per state"`
	StoredMessages       int64       `json:"storedMessages" cbor:"2,keyasint" doc:"messages that count toward maxMessages"`
	StoredBytes          int64       `json:"storedBytes" cbor:"3,keyasint" doc:"bytes that count toward maxBytes"`
	InFlightMessages     int64       `json:"inFlightMessages" cbor:"4,keyasint" doc:"messages that count toward maxInFlightMessages"`
	InFlightBytes        int64       `json:"inFlightBytes" cbor:"5,keyasint" doc:"bytes that count toward maxInFlightBytes"`
	DeadLetterBytes      int64       `json:"deadLetterBytes" cbor:"6,keyasint" doc:"bytes of dead letters"`
	OldestReadyAt        Time        `json:"oldestReadyAt,omitzero" cbor:"7,keyasint,omitempty" doc:"when the next message to be delivered was enqueued"`
	OldestReadyAgeMillis int64       `json:"oldestReadyAgeMillis,omitzero" cbor:"8,keyasint,omitempty" doc:"its age at the time of the answer"`
	NextDueAt            Time        `json:"nextDueAt,omitzero" cbor:"9,keyasint,omitempty" doc:"when the next scheduled message or lease is due"`
	Totals               QueueTotals `json:"totals" cbor:"10,keyasint" doc:"what happened since the lane began"`
	Policy               QueuePolicy `json:"policy" cbor:"11,keyasint" doc:"the policy in force"`
	Paused               bool        `json:"paused" cbor:"12,keyasint" doc:"whether receives are refused"`
}

// TargetPartition is the lane's partition.
func (r *QueuesStatusRequest) TargetPartition() PartitionRef { return r.Lane.Partition }

func (r *QueuesStatusRequest) resourceName() string { return r.Lane.Queue }
