package api

import "github.com/keyload/keyload/fault"

// AppendEvents appends events to a stream.
type AppendEvents struct {
	StreamSet  string         `json:"streamSet" cbor:"1,keyasint" format:"identifier" doc:"name of the stream set"`
	StreamID   string         `json:"streamId" cbor:"2,keyasint" format:"identifier" doc:"id of the stream within its set"`
	Generation uint64         `json:"generation,omitzero" cbor:"3,keyasint,omitempty" default:"1" minimum:"1" doc:"generation of the stream"`
	Expected   ExpectedStream `json:"expected" cbor:"4,keyasint" doc:"what the stream must be before"`
	Events     []Event        `json:"events" cbor:"5,keyasint" minItems:"1" maxItems:"256" doc:"events, in order"`
}

// Need is the right to append.
func (m *AppendEvents) Need() Need { return Need{CapEventsAppend, m.StreamSet} }

// ExpectedStream says what a stream must be before an append; exactly one field
// is set.
type ExpectedStream struct {
	Any      bool    `json:"any,omitzero" cbor:"1,keyasint,omitempty" doc:"whatever it is"`
	NoStream bool    `json:"noStream,omitzero" cbor:"2,keyasint,omitempty" doc:"it has no event yet"`
	Exact    *uint64 `json:"exact,omitzero" cbor:"3,keyasint,omitempty" doc:"its last position is this; 0 means it has no event yet"`
}

// ExpectAny accepts the stream whatever it is.
func ExpectAny() ExpectedStream { return ExpectedStream{Any: true} }

// ExpectNoStream wants a stream without events.
func ExpectNoStream() ExpectedStream { return ExpectedStream{NoStream: true} }

// ExpectExact wants a stream whose last position is n.
func ExpectExact(n uint64) ExpectedStream { return ExpectedStream{Exact: &n} }

// Check wants exactly one expectation.
func (e *ExpectedStream) Check() []fault.Violation {
	n := 0
	for _, set := range []bool{e.Any, e.NoStream, e.Exact != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return []fault.Violation{{Message: "exactly one of any, noStream and exact is required"}}
	}
	return nil
}

// Publish publishes events to a topic.
type Publish struct {
	Topic      string  `json:"topic" cbor:"1,keyasint" format:"identifier" doc:"name of the topic"`
	Generation uint64  `json:"generation,omitzero" cbor:"2,keyasint,omitempty" default:"1" minimum:"1" doc:"generation of the topic"`
	Events     []Event `json:"events" cbor:"3,keyasint" minItems:"1" maxItems:"256" doc:"events, in order"`
}

// Need is the right to publish.
func (m *Publish) Need() Need { return Need{CapTopicsPublish, m.Topic} }

// PurgeTopic removes the events of a topic up to a position.
type PurgeTopic struct {
	Topic           string `json:"topic" cbor:"1,keyasint" format:"identifier" doc:"name of the topic"`
	ThroughPosition uint64 `json:"throughPosition" cbor:"2,keyasint" minimum:"1" doc:"last position to remove; not above the checkpoint of any group"`
	Generation      uint64 `json:"generation,omitzero" cbor:"3,keyasint,omitempty" default:"1" minimum:"1" doc:"generation of the topic"`
}

// Need is the right to purge.
func (m *PurgeTopic) Need() Need { return Need{CapTopicsPurge, m.Topic} }
