package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/keyload/keyload/api"
)

// Message is one delivery of a queue as its handler gets it.
type Message struct {
	// Delivery is the message. Its Token and LeaseUntil are empty: the worker
	// holds the lease and renews it.
	api.Delivery
	// Lane is where it came from. Effects commit in its partition.
	Lane api.LaneRef
}

// Decode reads the JSON payload into v. The text of its error holds nothing of
// the payload.
func (m *Message) Decode(v any) error { return decode(m.Payload, v) }

// Event is one delivery of a subscription group as its handler gets it.
type Event struct {
	api.StoredEvent
	// Group is where it came from. Effects commit in the partition of its source.
	Group api.GroupRef
	// Attempt is how often the event was claimed, this time included.
	Attempt int64
	// Redriven says that it was a dead letter.
	Redriven bool
}

// Decode reads the JSON payload into v. The text of its error holds nothing of
// the payload.
func (e *Event) Decode(v any) error { return decode(e.Payload, v) }

func decode(payload api.JSON, v any) error {
	if payload.IsZero() {
		return errors.New("the payload is bytes, not JSON")
	}
	err := json.Unmarshal(payload, v)
	if err == nil {
		return nil
	}
	text := "the payload is not what the handler expects"
	if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) && t.Field != "" {
		kind, _, _ := strings.Cut(t.Value, " ") // a number stands after it
		text += fmt.Sprintf(": %s is a %s and should be of type %s", t.Field, kind, t.Type)
	}
	return &decodeError{text, err}
}

// decodeError keeps the reason of a failed Decode out of the text, which is
// stored with the message: it may quote the payload.
type decodeError struct {
	text string
	err  error
}

// Error says what did not fit, without the value.
func (e *decodeError) Error() string { return e.text }

// Unwrap is the error of the decoder.
func (e *decodeError) Unwrap() error { return e.err }
