package api

import (
	"strconv"

	"github.com/keyload/keyload/fault"
)

// GroupRef names one subscription group on one source.
type GroupRef struct {
	Source SourceRef `json:"source" cbor:"1,keyasint" doc:"topic or stream the group reads"`
	Group  string    `json:"group" cbor:"2,keyasint" format:"identifier" doc:"name of the group"`
}

// String is source#group.
func (g GroupRef) String() string { return g.Source.String() + "#" + escapePart(g.Group) }

// GroupFilter says which events a group delivers. Those it passes over are
// finished for the group. An empty filter matches every event; an event must
// match both parts.
type GroupFilter struct {
	EventTypes []string            `json:"eventTypes,omitempty" cbor:"1,keyasint,omitempty" maxItems:"64" format:"identifier" doc:"types to deliver: exact, or a prefix followed by *"`
	Headers    map[string][]string `json:"headers,omitempty" cbor:"2,keyasint,omitempty" maxItems:"16" doc:"header names, each with the values of which one must be there; an empty list wants the header with any value"`
}

// IsZero says that the filter matches everything: an empty one and an absent one
// have one form.
func (f GroupFilter) IsZero() bool { return len(f.EventTypes) == 0 && len(f.Headers) == 0 }

const (
	maxHeaderValues = 64
	maxHeaderText   = 1_024
)

// Check refuses a type with a * that does not end it, and texts out of bounds.
func (f *GroupFilter) Check() []fault.Violation {
	var v []fault.Violation
	for i, t := range f.EventTypes {
		for at := range len(t) - 1 {
			if t[at] == '*' {
				v = append(v, fault.Violation{Path: "/eventTypes/" + strconv.Itoa(i), Message: "may have a * only as its last character"})
				break
			}
		}
	}
	for name, values := range f.Headers {
		if name == "" || len(name) > maxHeaderText || len(values) > maxHeaderValues {
			v = append(v, fault.Violation{Path: "/headers", Message: "has a name that is empty or longer than 1024 bytes, or more than 64 values of one name"})
			break
		}
		for _, text := range values {
			if len(text) > maxHeaderText {
				v = append(v, fault.Violation{Path: "/headers", Message: "has a value longer than 1024 bytes"})
				return v
			}
		}
	}
	return v
}

// OnExhausted says what becomes of a position whose attempts are used up.
type OnExhausted string

// What becomes of a position whose attempts are used up.
const (
	ExhaustedDeadLetter OnExhausted = "deadLetter" // its event is copied to the group's dead letters and the position is finished
	ExhaustedHold       OnExhausted = "hold"       // it stays unfinished until a person acts; others go on until the window is full
	ExhaustedPause      OnExhausted = "pause"      // the group pauses; the position is tried anew after resume
)

// GroupOrder says which order deliveries keep.
type GroupOrder string

// The orders.
const (
	OrderNone   GroupOrder = "none"   // any worker may get any position
	OrderPerKey GroupOrder = "perKey" // of events of one key only the oldest unfinished one is delivered
)

// GroupDeadLetters bounds the dead letters of one group.
type GroupDeadLetters struct {
	MaxEvents int64 `json:"maxEvents,omitzero" cbor:"1,keyasint,omitempty" default:"10000" minimum:"1" maximum:"1000000" doc:"most dead letters; at the bound a position is held instead"`
	MaxBytes  int64 `json:"maxBytes,omitzero" cbor:"2,keyasint,omitempty" default:"268435456" minimum:"1" maximum:"1099511627776" doc:"most stored bytes of dead letters"`
}

// GroupPolicy is how a group delivers.
type GroupPolicy struct {
	MaxWindow          int64            `json:"maxWindow,omitzero" cbor:"1,keyasint,omitempty" default:"1024" minimum:"1" maximum:"65536" doc:"most matched positions above the checkpoint, finished or not; what may be delivered again"`
	MaxInFlight        int64            `json:"maxInFlight,omitzero" cbor:"2,keyasint,omitempty" default:"1024" minimum:"1" maximum:"65536" doc:"most leased positions"`
	MaxLeaseSeconds    int64            `json:"maxLeaseSeconds,omitzero" cbor:"3,keyasint,omitempty" default:"300" minimum:"1" maximum:"43200" doc:"longest single lease"`
	MaxLeaseAgeSeconds int64            `json:"maxLeaseAgeSeconds,omitzero" cbor:"4,keyasint,omitempty" default:"43200" minimum:"1" maximum:"43200" doc:"longest lease with its renewals"`
	MaxAttempts        int64            `json:"maxAttempts,omitzero" cbor:"5,keyasint,omitempty" default:"5" minimum:"1" maximum:"1000" doc:"claims of one position before onExhausted applies"`
	Retry              RetryPolicy      `json:"retry,omitzero" cbor:"6,keyasint" doc:"waits between attempts"`
	OnExhausted        OnExhausted      `json:"onExhausted,omitzero" cbor:"7,keyasint,omitempty" default:"deadLetter" enum:"deadLetter,hold,pause" doc:"what becomes of a position whose attempts are used up"`
	DeadLetter         GroupDeadLetters `json:"deadLetter,omitzero" cbor:"8,keyasint" doc:"room for dead letters"`
	Ordered            GroupOrder       `json:"ordered,omitzero" cbor:"9,keyasint,omitempty" default:"none" enum:"none,perKey" doc:"which order deliveries keep"`
	OrderingHeader     string           `json:"orderingHeader,omitzero" cbor:"10,keyasint,omitempty" maxLength:"1024" doc:"perKey: the header that is the key; the correlationId when absent. Events without a key keep no order"`
}

// Check refuses settings that contradict each other.
func (p *GroupPolicy) Check() []fault.Violation {
	var v []fault.Violation
	if p.MaxLeaseAgeSeconds < p.MaxLeaseSeconds {
		v = append(v, fault.Violation{Path: "/maxLeaseAgeSeconds", Message: "must not be less than maxLeaseSeconds"})
	}
	if p.OrderingHeader != "" && p.Ordered != OrderPerKey {
		v = append(v, fault.Violation{Path: "/orderingHeader", Message: "is only used with ordered: perKey"})
	}
	return v
}

// GroupStart says where a new group begins.
type GroupStart string

// Where a new group begins.
const (
	StartBeginning GroupStart = "beginning" // at the first retained event
	StartNow       GroupStart = "now"       // after the last event
	StartCursor    GroupStart = "cursor"    // after the place of a cursor of the source
)

// GroupDefinition is everything that was configured of a group.
type GroupDefinition struct {
	DataPrincipal string      `json:"dataPrincipal,omitzero" cbor:"1,keyasint,omitempty" format:"identifier" doc:"principal of the tenant whose rights bound what any worker of the group is shown"`
	Filter        GroupFilter `json:"filter,omitzero" cbor:"2,keyasint" doc:"which events the group delivers"`
	Policy        GroupPolicy `json:"policy,omitzero" cbor:"3,keyasint" doc:"how it delivers"`
	Start         GroupStart  `json:"start,omitzero" cbor:"4,keyasint,omitempty" default:"beginning" enum:"beginning,now,cursor" doc:"where a new group begins; of no meaning for one that exists, and not part of its definition"`
	Cursor        string      `json:"cursor,omitzero" cbor:"5,keyasint,omitempty" maxLength:"2048" doc:"start cursor: a cursor of the source"`
}

// IsZero says that nothing was defined.
func (d GroupDefinition) IsZero() bool {
	return d.DataPrincipal == "" && d.Filter.IsZero() && d.Policy == GroupPolicy{} && d.Start == "" && d.Cursor == ""
}

// Check wants a cursor exactly where the start is one.
func (d *GroupDefinition) Check() []fault.Violation {
	switch {
	case d.Start == StartCursor && d.Cursor == "":
		return []fault.Violation{{Path: "/cursor", Message: "is required with start: cursor"}}
	case d.Start != StartCursor && d.Cursor != "":
		return []fault.Violation{{Path: "/cursor", Message: "is only used with start: cursor"}}
	}
	return nil
}

// PositionState is where a position of a group is in its life.
type PositionState string

// The states of a position above the checkpoint. A finished one is part of a
// gap run.
const (
	PositionReady    PositionState = "ready"        // was claimed before and may be claimed again
	PositionLeased   PositionState = "leased"       // held by a worker until its deadline
	PositionWaiting  PositionState = "waiting"      // waits for its next attempt
	PositionBlocked  PositionState = "blocked"      // waits for an older position of its key
	PositionHeld     PositionState = "held"         // its attempts are used up; waits for a person
	PositionFinished PositionState = "finished"     // acknowledged, passed over, skipped or dead-lettered
	PositionDead     PositionState = "deadLettered" // finished for the group; a copy of its event waits for a person
	PositionPending  PositionState = "pending"      // not issued yet
	PositionGone     PositionState = "purged"       // before the first retained event
	PositionFuture   PositionState = "afterTail"    // no such event yet
)

// GroupState is where a group stands.
type GroupState struct {
	Generation     uint64 `json:"generation" cbor:"1,keyasint" doc:"rises with every seek and filter update; a group that is deleted and made again begins above those of the old one"`
	OwnershipEpoch uint64 `json:"ownershipEpoch" cbor:"2,keyasint" doc:"rises whenever tokens given before stop to hold"`
	Checkpoint     uint64 `json:"checkpoint" cbor:"3,keyasint" doc:"it and every position before it are finished"`
	Issued         uint64 `json:"issued" cbor:"4,keyasint" doc:"highest position that was looked at"`
	Tail           uint64 `json:"tail" cbor:"5,keyasint" doc:"last position of the source"`
	Paused         bool   `json:"paused" cbor:"6,keyasint" doc:"whether receives are refused"`
	FailureCode    string `json:"failureCode,omitzero" cbor:"7,keyasint,omitempty" doc:"why the group paused itself"`
	FailedPosition uint64 `json:"failedPosition,omitzero" cbor:"8,keyasint,omitempty" doc:"the position that paused it"`
}

// WindowRow is one row of a group's window: an unfinished position, or a gap run
// of finished ones.
type WindowRow struct {
	From        uint64        `json:"from" cbor:"1,keyasint" doc:"the position; the first one of a run"`
	To          uint64        `json:"to" cbor:"2,keyasint" doc:"the position; the last one of a run"`
	State       PositionState `json:"state" cbor:"3,keyasint" enum:"ready,leased,waiting,blocked,held,finished" doc:"finished for a run"`
	Matched     int64         `json:"matched" cbor:"4,keyasint" doc:"how many of the row count toward maxWindow"`
	Attempts    int64         `json:"attempts,omitzero" cbor:"5,keyasint,omitempty" doc:"claims so far"`
	Failures    int64         `json:"failures,omitzero" cbor:"6,keyasint,omitempty" doc:"nacks so far"`
	LeaseLosses int64         `json:"leaseLosses,omitzero" cbor:"7,keyasint,omitempty" doc:"leases that ran out so far"`
	Holder      string        `json:"holder,omitzero" cbor:"8,keyasint,omitempty" doc:"principal that holds the lease"`
	SessionID   string        `json:"sessionId,omitzero" cbor:"9,keyasint,omitempty" doc:"the name that the holder of the lease gave itself when it asked"`
	LeaseUntil  Time          `json:"leaseUntil,omitzero" cbor:"10,keyasint,omitempty" doc:"end of the lease"`
	NotBefore   Time          `json:"notBefore,omitzero" cbor:"11,keyasint,omitempty" doc:"when the next attempt is due"`
	LastFailure string        `json:"lastFailure,omitzero" cbor:"12,keyasint,omitempty" doc:"why the last attempt failed"`
	IssuedAt    Time          `json:"issuedAt,omitzero" cbor:"13,keyasint,omitempty" doc:"when the position was first claimed or met"`
	EventID     string        `json:"eventId,omitzero" cbor:"14,keyasint,omitempty" doc:"id of its event"`
	AgeMillis   int64         `json:"ageMillis,omitzero" cbor:"15,keyasint,omitempty" doc:"time since it was first claimed or met"`
}

// GroupDelivery is one leased event as its worker gets it.
type GroupDelivery struct {
	Event        StoredEvent `json:"event" cbor:"1,keyasint" doc:"the event, without the fields the caller or the group's data principal may not see"`
	Token        string      `json:"token" cbor:"2,keyasint" doc:"proof of this lease; needed to complete or process the event"`
	Attempt      int64       `json:"attempt" cbor:"3,keyasint" doc:"how often the position was claimed, this time included"`
	LeaseUntil   Time        `json:"leaseUntil" cbor:"4,keyasint" doc:"instant from which another worker may get the event"`
	LeaseVersion uint64      `json:"leaseVersion" cbor:"5,keyasint" doc:"rises with every claim and renewal; never given twice in a group"`
	Redriven     bool        `json:"redriven,omitzero" cbor:"6,keyasint,omitempty" doc:"the event was a dead letter"`
}
