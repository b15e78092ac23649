package api

import "github.com/keyload/keyload/fault"

// StreamsRead reads a stream.
var StreamsRead = Define[StreamsReadRequest, StreamsReadResponse](Operation{
	Name: "streams.read", Number: 6, Kind: Query, Scope: PartitionScope, Capability: CapEventsRead,
	Summary: "Read a stream forward or backward",
	Doc: "Answers a page of events and a cursor, also when the page is empty. A position before the first retained " +
		"event is HistoryUnavailable; one after the tail is Validation. waitMillis lets a forward read wait at the tail for the next event.",
})

// Direction is the way a stream is read.
type Direction string

// The directions.
const (
	Forward  Direction = "forward"
	Backward Direction = "backward"
)

// StreamsReadRequest asks for one page.
type StreamsReadRequest struct {
	Stream        StreamRef    `json:"stream" cbor:"1,keyasint" doc:"stream to read"`
	AfterPosition uint64       `json:"afterPosition,omitzero" cbor:"2,keyasint,omitempty" doc:"forward: events after this one, 0 from the start; backward: events before this one, 0 from the tail"`
	Cursor        string       `json:"cursor,omitzero" cbor:"3,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended, instead of afterPosition"`
	Direction     Direction    `json:"direction,omitzero" cbor:"4,keyasint,omitempty" default:"forward" enum:"forward,backward" doc:"oldest or newest first"`
	Limit         int64        `json:"limit,omitzero" cbor:"5,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most events of the page"`
	MaxBytes      int64        `json:"maxBytes,omitzero" cbor:"6,keyasint,omitempty" default:"1048576" minimum:"1" maximum:"8388608" doc:"most bytes of the page; one event is always returned"`
	WaitMillis    int64        `json:"waitMillis,omitzero" cbor:"7,keyasint,omitempty" minimum:"0" maximum:"20000" doc:"how long to wait for an event at the tail"`
	MinToken      *CommitToken `json:"minToken,omitzero" cbor:"8,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// StreamsReadResponse is one page.
type StreamsReadResponse struct {
	Events         []StoredEvent `json:"events" cbor:"1,keyasint" doc:"events in the order asked for"`
	Cursor         string        `json:"cursor" cbor:"2,keyasint" doc:"where to go on; given with every page"`
	Tail           uint64        `json:"tail" cbor:"3,keyasint" doc:"position of the last event; 0 when there is none"`
	FirstAvailable uint64        `json:"firstAvailable" cbor:"4,keyasint" doc:"position of the first retained event, or of the next one when none is retained"`
	Examined       Examined      `json:"examined" cbor:"5,keyasint" doc:"what the read cost"`
}

// TargetPartition is the partition that is read.
func (r *StreamsReadRequest) TargetPartition() PartitionRef { return r.Stream.Partition }

func (r *StreamsReadRequest) resourceName() string { return r.Stream.StreamSet }

// Check refuses two starting points, and waiting for events of the past.
func (r *StreamsReadRequest) Check() []fault.Violation {
	v := checkStart(r.AfterPosition, r.Cursor)
	if r.Direction == Backward && r.WaitMillis > 0 {
		v = append(v, fault.Violation{Path: "/waitMillis", Message: "cannot be given when reading backward"})
	}
	return v
}

// checkStart holds the rule for the starting point of a read.
func checkStart(after uint64, cursor string) []fault.Violation {
	if after != 0 && cursor != "" {
		return []fault.Violation{{Path: "/cursor", Message: "cannot be given together with afterPosition"}}
	}
	return nil
}
