package api

// SubscriptionsDeadLettersList lists the dead letters of a group.
var SubscriptionsDeadLettersList = Define[SubscriptionsDeadLettersListRequest, SubscriptionsDeadLettersListResponse](Operation{
	Name: "subscriptions.deadletters.list", Number: 39, Kind: Query, Scope: PartitionScope, Capability: CapDeadLettersRead,
	Summary: "List the dead letters of a subscription group",
	Doc:     "Answers a page of dead letters by position, with their events unless withoutEvents, and why each was given up.",
})

// SubscriptionsDeadLettersListRequest asks for one page.
type SubscriptionsDeadLettersListRequest struct {
	Group         GroupRef     `json:"group" cbor:"1,keyasint" doc:"group and its source"`
	Limit         int64        `json:"limit,omitzero" cbor:"2,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most dead letters of the page"`
	MaxBytes      int64        `json:"maxBytes,omitzero" cbor:"3,keyasint,omitempty" default:"1048576" minimum:"1" maximum:"8388608" doc:"most bytes of the page; one is always returned"`
	Cursor        string       `json:"cursor,omitzero" cbor:"4,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended"`
	WithoutEvents bool         `json:"withoutEvents,omitzero" cbor:"5,keyasint,omitempty" doc:"leave the events out"`
	MinToken      *CommitToken `json:"minToken,omitzero" cbor:"6,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// DeadLetter is one event that a group gave up.
type DeadLetter struct {
	Position    uint64        `json:"position" cbor:"1,keyasint" doc:"place in the source"`
	State       PositionState `json:"state" cbor:"2,keyasint" enum:"deadLettered,ready,leased,waiting" doc:"deadLettered until it is redriven"`
	Version     uint64        `json:"version" cbor:"3,keyasint" doc:"rises with every change of the dead letter"`
	Attempts    int64         `json:"attempts" cbor:"4,keyasint" doc:"claims since it was delivered first or redriven"`
	Failures    int64         `json:"failures" cbor:"5,keyasint" doc:"nacks since then"`
	LeaseLosses int64         `json:"leaseLosses" cbor:"6,keyasint" doc:"leases that ran out since then"`
	Redrives    int64         `json:"redrives,omitzero" cbor:"7,keyasint,omitempty" doc:"how often it was redriven"`
	LastFailure string        `json:"lastFailure,omitzero" cbor:"8,keyasint,omitempty" doc:"why the last attempt failed"`
	At          Time          `json:"at" cbor:"9,keyasint" doc:"when it became a dead letter"`
	Event       *StoredEvent  `json:"event,omitzero" cbor:"10,keyasint,omitempty" doc:"the event"`
}

// SubscriptionsDeadLettersListResponse is one page.
type SubscriptionsDeadLettersListResponse struct {
	DeadLetters []DeadLetter `json:"deadLetters" cbor:"1,keyasint" doc:"dead letters by position"`
	Cursor      string       `json:"cursor,omitzero" cbor:"2,keyasint,omitempty" doc:"where to go on; absent at the end"`
	Examined    Examined     `json:"examined" cbor:"3,keyasint" doc:"what the read cost"`
}

// TargetPartition is the source's partition.
func (r *SubscriptionsDeadLettersListRequest) TargetPartition() PartitionRef {
	return r.Group.Source.Partition
}

func (r *SubscriptionsDeadLettersListRequest) resourceName() string { return r.Group.Source.Resource }
