package api

import "github.com/keyload/keyload/fault"

// Event is one event to append or publish. It has either a JSON payload or a
// byte payload; an empty byte payload is written as a contentType alone.
type Event struct {
	EventID       string            `json:"eventId,omitzero" cbor:"1,keyasint,omitempty" format:"identifier" doc:"identity within the stream or topic; derived from the command id and the event's place when absent"`
	Type          string            `json:"type" cbor:"2,keyasint" format:"identifier" doc:"what happened, for example OrderCreated"`
	Payload       JSON              `json:"payload,omitzero" cbor:"3,keyasint,omitempty" maxLength:"1048576" doc:"any JSON value"`
	PayloadBase64 []byte            `json:"payloadBase64,omitempty" cbor:"4,keyasint,omitempty" maxLength:"1048576" doc:"bytes instead of a JSON value"`
	ContentType   string            `json:"contentType,omitzero" cbor:"5,keyasint,omitempty" maxLength:"256" doc:"media type of a byte payload"`
	Headers       map[string]string `json:"headers,omitempty" cbor:"6,keyasint,omitempty" maxItems:"64" format:"headers" doc:"texts that travel beside the payload; 32 KiB together"`
	SchemaVersion int64             `json:"schemaVersion,omitzero" cbor:"7,keyasint,omitempty" default:"1" minimum:"1" maximum:"2147483647" doc:"version of the payload's shape"`
	OccurredAt    Time              `json:"occurredAt,omitzero" cbor:"8,keyasint,omitempty" doc:"when it happened, by the producer's clock"`
	CorrelationID string            `json:"correlationId,omitzero" cbor:"9,keyasint,omitempty" format:"identifier" doc:"id shared by everything that belongs to one piece of work"`
	CausationID   string            `json:"causationId,omitzero" cbor:"10,keyasint,omitempty" format:"identifier" doc:"id of what caused this event"`
}

// Check refuses an event without exactly one payload.
func (e *Event) Check() []fault.Violation {
	return checkPayload(e.Payload, e.PayloadBase64, e.ContentType)
}

// StoredEvent is an event as it is read back.
type StoredEvent struct {
	Position      uint64            `json:"position" cbor:"1,keyasint" doc:"place in the stream or topic, from 1"`
	EventID       string            `json:"eventId" cbor:"2,keyasint" format:"identifier" doc:"identity within the stream or topic"`
	Type          string            `json:"type" cbor:"3,keyasint" format:"identifier" doc:"what happened"`
	Payload       JSON              `json:"payload,omitzero" cbor:"4,keyasint,omitempty" doc:"the JSON payload"`
	PayloadBase64 []byte            `json:"payloadBase64,omitempty" cbor:"5,keyasint,omitempty" doc:"the byte payload"`
	ContentType   string            `json:"contentType,omitzero" cbor:"6,keyasint,omitempty" doc:"media type of a byte payload"`
	Headers       map[string]string `json:"headers,omitempty" cbor:"7,keyasint,omitempty" doc:"texts that travel beside the payload"`
	SchemaVersion int64             `json:"schemaVersion" cbor:"8,keyasint" doc:"version of the payload's shape"`
	OccurredAt    Time              `json:"occurredAt,omitzero" cbor:"9,keyasint,omitempty" doc:"when it happened, by the producer's clock"`
	CorrelationID string            `json:"correlationId,omitzero" cbor:"10,keyasint,omitempty" doc:"id shared by everything that belongs to one piece of work"`
	CausationID   string            `json:"causationId,omitzero" cbor:"11,keyasint,omitempty" doc:"id of what caused this event"`
	PublishedAt   Time              `json:"publishedAt" cbor:"12,keyasint" doc:"logged time of the command that stored it"`
	Redacted      []string          `json:"redacted,omitempty" cbor:"13,keyasint,omitempty" doc:"JSON pointers of the fields the caller may not see"`
}

// checkPayload holds the rule for payload, payloadBase64 and contentType, which
// events and messages share.
func checkPayload(payload JSON, bytes []byte, contentType string) []fault.Violation {
	switch {
	case len(payload) > 0 && len(bytes) > 0:
		return []fault.Violation{{Path: "/payloadBase64", Message: "cannot be given together with payload"}}
	case len(payload) > 0 && contentType != "":
		return []fault.Violation{{Path: "/contentType", Message: "belongs to payloadBase64; a payload is always JSON"}}
	case len(payload) == 0 && len(bytes) == 0 && contentType == "":
		return []fault.Violation{{Path: "/payload", Message: "is required, or payloadBase64 with a contentType"}}
	}
	return nil
}
