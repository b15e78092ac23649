package api

// SubscriptionsStatus sums up a group.
var SubscriptionsStatus = Define[SubscriptionsStatusRequest, SubscriptionsStatusResponse](Operation{
	Name: "subscriptions.status", Number: 36, Kind: Query, Scope: PartitionScope, Capability: CapTopicsRead,
	Summary: "See where a subscription group stands: checkpoint, window, lag, what blocks it",
	Doc: "Answers the definition in force, the counters, the first rows of the window, the oldest unfinished position with its holder " +
		"and age, why a receive would claim nothing, and what the group pins. The work follows the rows asked for, not the backlog.",
})

// SubscriptionsStatusRequest names a group.
type SubscriptionsStatusRequest struct {
	Group    GroupRef     `json:"group" cbor:"1,keyasint" doc:"group and its source"`
	Rows     int64        `json:"rows,omitzero" cbor:"2,keyasint,omitempty" default:"32" minimum:"1" maximum:"1000" doc:"most rows of the window to list"`
	MinToken *CommitToken `json:"minToken,omitzero" cbor:"3,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// GroupCounts is how many positions above the checkpoint are in each state.
type GroupCounts struct {
	Ready           int64 `json:"ready" cbor:"1,keyasint" doc:"positions that may be claimed again, redriven dead letters included"`
	Leased          int64 `json:"leased" cbor:"2,keyasint" doc:"positions held by workers, redriven dead letters included"`
	Waiting         int64 `json:"waiting" cbor:"3,keyasint" doc:"positions that wait for their next attempt, redriven dead letters included"`
	Blocked         int64 `json:"blocked" cbor:"4,keyasint" doc:"positions that wait for an older one of their key"`
	Held            int64 `json:"held" cbor:"5,keyasint" doc:"positions that wait for a person"`
	Matched         int64 `json:"matched" cbor:"6,keyasint" doc:"positions that count toward maxWindow, finished or not"`
	Runs            int64 `json:"runs" cbor:"7,keyasint" doc:"gap runs"`
	Rows            int64 `json:"rows" cbor:"8,keyasint" doc:"rows of the window: unfinished positions and gap runs"`
	DeadLetters     int64 `json:"deadLetters" cbor:"9,keyasint" doc:"dead letters, redriven ones included"`
	DeadLetterBytes int64 `json:"deadLetterBytes" cbor:"10,keyasint" doc:"stored bytes of the dead letters"`
}

// GroupTotals is what happened since the group was created.
type GroupTotals struct {
	Delivered    int64 `json:"delivered" cbor:"1,keyasint" doc:"claims given"`
	Acked        int64 `json:"acked" cbor:"2,keyasint" doc:"positions acknowledged"`
	Nacked       int64 `json:"nacked" cbor:"3,keyasint" doc:"deliveries refused by workers"`
	LeasesLost   int64 `json:"leasesLost" cbor:"4,keyasint" doc:"leases that ran out"`
	PassedOver   int64 `json:"passedOver" cbor:"5,keyasint" doc:"positions the filter did not match"`
	DeadLettered int64 `json:"deadLettered" cbor:"6,keyasint" doc:"positions that became dead letters"`
	Redriven     int64 `json:"redriven" cbor:"7,keyasint" doc:"dead letters delivered again"`
	Skipped      int64 `json:"skipped" cbor:"8,keyasint" doc:"positions finished by a person"`
}

// SubscriptionsStatusResponse sums up the group.
type SubscriptionsStatusResponse struct {
	State            GroupState        `json:"state" cbor:"1,keyasint" doc:"where the group stands"`
	Lag              uint64            `json:"lag" cbor:"2,keyasint" doc:"positions above the checkpoint, the window included"`
	CompletedAhead   uint64            `json:"completedAhead" cbor:"3,keyasint" doc:"finished positions above the checkpoint"`
	Counts           GroupCounts       `json:"counts" cbor:"4,keyasint" doc:"positions per state"`
	Window           []WindowRow       `json:"window" cbor:"5,keyasint" doc:"the first rows of the window, lowest position first"`
	OldestUnfinished *WindowRow        `json:"oldestUnfinished,omitzero" cbor:"6,keyasint,omitempty" doc:"the position that holds the checkpoint back"`
	Reason           EmptyReason       `json:"reason,omitzero" cbor:"7,keyasint,omitempty" enum:"empty,scheduled,inFlightLimit,keyBlocked,windowFull,parkedHead,paused,dispatchPaused,dataPrincipal" doc:"why a receive would claim nothing now; absent when it would look for something"`
	BlockedBy        uint64            `json:"blockedBy,omitzero" cbor:"8,keyasint,omitempty" doc:"the lowest unfinished position, when the window is full"`
	NextDueAt        Time              `json:"nextDueAt,omitzero" cbor:"9,keyasint,omitempty" doc:"when the next retry or lease is due"`
	PinnedBytes      int64             `json:"pinnedBytes" cbor:"10,keyasint" doc:"stored bytes of the retained events above the checkpoint"`
	Totals           GroupTotals       `json:"totals" cbor:"11,keyasint" doc:"what happened since the group was created"`
	Definition       GroupDefinition   `json:"definition" cbor:"12,keyasint" doc:"the definition in force"`
	Skipped          []SkippedPosition `json:"skipped,omitempty" cbor:"13,keyasint,omitempty" doc:"the last skips"`
}

// Why a group delivers nothing to anybody; a receive is refused then.
const (
	ReasonPaused EmptyReason = "paused" // the group or its source is paused
	// ReasonDispatchPaused says that the whole store is paused.
	ReasonDispatchPaused EmptyReason = "dispatchPaused"
	ReasonDataPrincipal  EmptyReason = "dataPrincipal" // the data principal is gone, or may not read the source
)

// TargetPartition is the source's partition.
func (r *SubscriptionsStatusRequest) TargetPartition() PartitionRef { return r.Group.Source.Partition }

func (r *SubscriptionsStatusRequest) needs() []Need { return sourceNeeds(r.Group.Source) }
