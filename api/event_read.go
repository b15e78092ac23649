package api

import "github.com/keyload/keyload/fault"

// EventsRead reads a topic, or a stream as a source.
var EventsRead = Define[EventsReadRequest, EventsReadResponse](Operation{
	Name: "events.read", Number: 7, Kind: Query, Scope: PartitionScope, Capability: CapTopicsRead,
	Summary: "Read the events of a topic in order",
	Doc: "Answers a page of events and a cursor, also when the page is empty. A position before the first retained " +
		"event is HistoryUnavailable; one after the tail is Validation. waitMillis waits at the tail for the next event. " +
		"With kind stream it reads one stream and needs events.read.",
})

// EventsReadRequest asks for one page.
type EventsReadRequest struct {
	Source        SourceRef    `json:"source" cbor:"1,keyasint" doc:"topic or stream to read"`
	AfterPosition uint64       `json:"afterPosition,omitzero" cbor:"2,keyasint,omitempty" doc:"events after this one; 0 from the start"`
	Cursor        string       `json:"cursor,omitzero" cbor:"3,keyasint,omitempty" maxLength:"2048" doc:"where the last page ended, instead of afterPosition"`
	Limit         int64        `json:"limit,omitzero" cbor:"4,keyasint,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"most events of the page"`
	MaxBytes      int64        `json:"maxBytes,omitzero" cbor:"5,keyasint,omitempty" default:"1048576" minimum:"1" maximum:"8388608" doc:"most bytes of the page; one event is always returned"`
	WaitMillis    int64        `json:"waitMillis,omitzero" cbor:"6,keyasint,omitempty" minimum:"0" maximum:"20000" doc:"how long to wait for an event at the tail"`
	MinToken      *CommitToken `json:"minToken,omitzero" cbor:"7,keyasint,omitempty" doc:"see at least everything up to this point"`
}

// EventsReadResponse is one page.
type EventsReadResponse struct {
	Events         []StoredEvent `json:"events" cbor:"1,keyasint" doc:"events in order"`
	Cursor         string        `json:"cursor" cbor:"2,keyasint" doc:"where to go on; given with every page"`
	Tail           uint64        `json:"tail" cbor:"3,keyasint" doc:"position of the last event; 0 when there is none"`
	FirstAvailable uint64        `json:"firstAvailable" cbor:"4,keyasint" doc:"position of the first retained event, or of the next one when none is retained"`
	Examined       Examined      `json:"examined" cbor:"5,keyasint" doc:"what the read cost"`
}

// TargetPartition is the partition that is read.
func (r *EventsReadRequest) TargetPartition() PartitionRef { return r.Source.Partition }

func (r *EventsReadRequest) needs() []Need { return sourceNeeds(r.Source) }

// sourceNeeds is what seeing a source takes.
func sourceNeeds(s SourceRef) []Need {
	if s.Kind == SourceStream {
		return []Need{{CapEventsRead, s.Resource}}
	}
	return []Need{{CapTopicsRead, s.Resource}}
}

// Check refuses two starting points.
func (r *EventsReadRequest) Check() []fault.Violation { return checkStart(r.AfterPosition, r.Cursor) }
