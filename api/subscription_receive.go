package api

// SubscriptionsReceive claims events of a group.
var SubscriptionsReceive = Define[SubscriptionsReceiveRequest, SubscriptionsReceiveResponse](Operation{
	Name: "subscriptions.receive", Number: 28, Kind: Command, Scope: PartitionScope, Capability: CapGroupsConsume,
	Summary: "Claim events of a subscription group under a lease",
	Doc: "Claims up to maxEvents positions, lowest first: those to be tried again, then new ones. Events the filter does not " +
		"match are finished in passing. At maxWindow matched positions above the checkpoint no new position is claimed, and " +
		"the answer names the position that blocks. An empty answer says why. Repeating the same requestId answers the same " +
		"deliveries while every lease of them is live.",
})

// SubscriptionsReceiveRequest asks for events.
type SubscriptionsReceiveRequest struct {
	RequestID          string   `json:"requestId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this receive; it is the command id"`
	Group              GroupRef `json:"group" cbor:"2,keyasint" doc:"group and its source"`
	MaxEvents          int64    `json:"maxEvents,omitzero" cbor:"3,keyasint,omitempty" default:"1" minimum:"1" maximum:"256" doc:"most events to claim"`
	MaxBytes           int64    `json:"maxBytes,omitzero" cbor:"4,keyasint,omitempty" default:"1048576" minimum:"1" maximum:"8388608" doc:"most bytes to claim"`
	LeaseSeconds       int64    `json:"leaseSeconds,omitzero" cbor:"5,keyasint,omitempty" default:"30" minimum:"1" maximum:"43200" doc:"how long the events are held; the group's policy may allow less"`
	WaitMillis         int64    `json:"waitMillis,omitzero" cbor:"6,keyasint,omitempty" minimum:"0" maximum:"20000" doc:"how long to wait for the first event"`
	SessionID          string   `json:"sessionId,omitzero" cbor:"7,keyasint,omitempty" format:"identifier" doc:"your name for the worker that asks; the group's status shows it with the lease, nothing else depends on it"`
	ExpectedGeneration uint64   `json:"expectedGeneration,omitzero" cbor:"8,keyasint,omitempty" minimum:"1" doc:"only deliver while the group is at this generation: a worker written for one filter gets nothing of another"`
}

// Why a receive of a group claimed nothing, beside the reasons of a queue.
const (
	ReasonWindowFull EmptyReason = "windowFull" // maxWindow positions are issued above the checkpoint; blockedBy holds them back
	ReasonParkedHead EmptyReason = "parkedHead" // as windowFull, and blockedBy waits for a person
)

// GroupExamined says how much a receive of a group looked at.
type GroupExamined struct {
	Retries   int64 `json:"retries,omitzero" cbor:"1,keyasint,omitempty" doc:"due retries looked at"`
	Expired   int64 `json:"expired,omitzero" cbor:"2,keyasint,omitempty" doc:"expired leases looked at"`
	Ready     int64 `json:"ready,omitzero" cbor:"3,keyasint,omitempty" doc:"positions to be tried again looked at"`
	Positions int64 `json:"positions,omitzero" cbor:"4,keyasint,omitempty" doc:"new positions looked at"`
}

// SubscriptionsReceiveResponse is what was claimed.
type SubscriptionsReceiveResponse struct {
	Receipt    Receipt         `json:"receipt,omitzero" cbor:"1,keyasint" doc:"proof of the claim; absent from an answer that needed no commit"`
	Deliveries []GroupDelivery `json:"deliveries" cbor:"2,keyasint" doc:"claimed events, lowest position first"`
	Reason     EmptyReason     `json:"reason,omitzero" cbor:"3,keyasint,omitempty" enum:"empty,scheduled,inFlightLimit,keyBlocked,scanLimit,waitElapsed,windowFull,parkedHead" doc:"why there is no delivery"`
	NextDueAt  Time            `json:"nextDueAt,omitzero" cbor:"4,keyasint,omitempty" doc:"when the next retry or lease is due, when nothing was delivered"`
	BlockedBy  uint64          `json:"blockedBy,omitzero" cbor:"5,keyasint,omitempty" doc:"the lowest unfinished position, when the window is full"`
	Generation uint64          `json:"generation" cbor:"6,keyasint" doc:"the group's generation"`
	Examined   GroupExamined   `json:"examined,omitzero" cbor:"7,keyasint" doc:"what the receive cost"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsReceiveRequest) TargetPartition() PartitionRef { return r.Group.Source.Partition }

func (r *SubscriptionsReceiveRequest) resourceName() string { return r.Group.Source.Resource }

// GetCommandID is the caller's identity of the receive.
func (r *SubscriptionsReceiveRequest) GetCommandID() string { return r.RequestID }

// SetCommandID sets it.
func (r *SubscriptionsReceiveRequest) SetCommandID(id string) { r.RequestID = id }
