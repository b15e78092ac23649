package api

import "github.com/keyload/keyload/fault"

// Message is one message to enqueue. It has either a JSON payload or a byte
// payload; an empty byte payload is written as a contentType alone.
type Message struct {
	MessageID     string            `json:"messageId,omitzero" cbor:"1,keyasint,omitempty" format:"identifier" doc:"identity within the lane; derived from the command id and the mutation's place when absent"`
	Payload       JSON              `json:"payload,omitzero" cbor:"2,keyasint,omitempty" maxLength:"1048576" doc:"any JSON value"`
	PayloadBase64 []byte            `json:"payloadBase64,omitempty" cbor:"3,keyasint,omitempty" maxLength:"1048576" doc:"bytes instead of a JSON value"`
	ContentType   string            `json:"contentType,omitzero" cbor:"4,keyasint,omitempty" maxLength:"256" doc:"media type of a byte payload"`
	Headers       map[string]string `json:"headers,omitempty" cbor:"5,keyasint,omitempty" maxItems:"64" format:"headers" doc:"texts that travel beside the payload; 32 KiB together"`
	NotBefore     Time              `json:"notBefore,omitzero" cbor:"6,keyasint,omitempty" doc:"not delivered before this instant"`
	ExpiresAt     Time              `json:"expiresAt,omitzero" cbor:"7,keyasint,omitempty" doc:"not delivered from this instant on"`
	OrderingKey   string            `json:"orderingKey,omitzero" cbor:"8,keyasint,omitempty" format:"identifier" doc:"messages of one key keep their order in queues ordered by key"`
	FairnessKey   string            `json:"fairnessKey,omitzero" cbor:"9,keyasint,omitempty" format:"identifier" doc:"keys share the lane's delivery fairly"`
	Priority      *int              `json:"priority,omitzero" cbor:"10,keyasint,omitempty" default:"4" minimum:"0" maximum:"9" doc:"0 is delivered first, 9 last"`
	MaxAttempts   int64             `json:"maxAttempts,omitzero" cbor:"11,keyasint,omitempty" minimum:"1" maximum:"1000" doc:"claims before dead-lettering; the queue's policy when absent"`
}

// Check refuses a message without exactly one payload, or that expires before
// it may be delivered.
func (m *Message) Check() []fault.Violation {
	v := checkPayload(m.Payload, m.PayloadBase64, m.ContentType)
	if m.ExpiresAt != 0 && m.ExpiresAt <= m.NotBefore {
		v = append(v, fault.Violation{Path: "/expiresAt", Message: "must be later than notBefore"})
	}
	return v
}

// MessageState is where a message is in its life.
type MessageState string

// The states of a message. The last five are final unless an operator redrives
// a dead letter.
const (
	StateScheduled         MessageState = "scheduled"         // waits for its time
	StateReady             MessageState = "ready"             // may be delivered
	StateLeased            MessageState = "leased"            // held by a worker until its deadline
	StateAcked             MessageState = "acked"             // finished
	StateDeadLettered      MessageState = "deadLettered"      // stopped being retried, waits for a person
	StatePendingDeadLetter MessageState = "pendingDeadLetter" // as deadLettered, waiting for room among the dead letters
	StateExpired           MessageState = "expired"           // its time passed
	StateCancelled         MessageState = "cancelled"         // withdrawn
)

// MessageStates lists every state.
func MessageStates() []MessageState {
	return []MessageState{
		StateScheduled, StateReady, StateLeased, StateAcked,
		StateDeadLettered, StatePendingDeadLetter, StateExpired, StateCancelled,
	}
}

// Delivery is one leased message as its worker gets it.
type Delivery struct {
	MessageID          string            `json:"messageId" cbor:"1,keyasint" doc:"identity within the lane"`
	Payload            JSON              `json:"payload,omitzero" cbor:"2,keyasint,omitempty" doc:"the JSON payload"`
	PayloadBase64      []byte            `json:"payloadBase64,omitempty" cbor:"3,keyasint,omitempty" doc:"the byte payload"`
	ContentType        string            `json:"contentType,omitzero" cbor:"4,keyasint,omitempty" doc:"media type of a byte payload"`
	Headers            map[string]string `json:"headers,omitempty" cbor:"5,keyasint,omitempty" doc:"texts that travel beside the payload"`
	Token              string            `json:"token" cbor:"6,keyasint" doc:"proof of this lease; needed to complete or process the message"`
	Attempt            int64             `json:"attempt" cbor:"7,keyasint" doc:"how often the message was claimed, this time included"`
	LeaseUntil         Time              `json:"leaseUntil" cbor:"8,keyasint" doc:"instant from which another worker may get the message"`
	DeliveryGeneration uint64            `json:"deliveryGeneration" cbor:"9,keyasint" doc:"rises when the message is redriven"`
	LeaseVersion       uint64            `json:"leaseVersion" cbor:"10,keyasint" doc:"rises with every claim and renewal; never given twice in a lane"`
	OrderingKey        string            `json:"orderingKey,omitzero" cbor:"11,keyasint,omitempty" doc:"the message's ordering key"`
	EnqueuedAt         Time              `json:"enqueuedAt" cbor:"12,keyasint" doc:"logged time at which the message was stored"`
	Redacted           []string          `json:"redacted,omitempty" cbor:"13,keyasint,omitempty" doc:"JSON pointers of the fields the caller may not see"`
}

// MessageInfo is everything known about one message. The payload is present
// where it was asked for, is still stored, and may be seen.
type MessageInfo struct {
	Queue              string            `json:"queue" cbor:"1,keyasint" doc:"name of the queue"`
	MessageID          string            `json:"messageId" cbor:"2,keyasint" doc:"identity within the lane"`
	State              MessageState      `json:"state" cbor:"3,keyasint" enum:"scheduled,ready,leased,acked,deadLettered,pendingDeadLetter,expired,cancelled" doc:"where the message is in its life"`
	StateVersion       uint64            `json:"stateVersion" cbor:"4,keyasint" doc:"rises with every change of the message"`
	DeliveryGeneration uint64            `json:"deliveryGeneration" cbor:"5,keyasint" doc:"rises when the message is redriven"`
	LeaseVersion       uint64            `json:"leaseVersion,omitzero" cbor:"6,keyasint,omitempty" doc:"rises with every claim and renewal; never given twice in a lane"`
	Attempts           int64             `json:"attempts" cbor:"7,keyasint" doc:"claims in this delivery generation"`
	Failures           int64             `json:"failures" cbor:"8,keyasint" doc:"nacks in this delivery generation"`
	LeaseLosses        int64             `json:"leaseLosses" cbor:"9,keyasint" doc:"leases that ran out in this delivery generation"`
	MaxAttempts        int64             `json:"maxAttempts" cbor:"10,keyasint" doc:"claims before dead-lettering, by the message or the queue's policy"`
	Priority           int64             `json:"priority" cbor:"11,keyasint" doc:"0 is delivered first, 9 last"`
	ReadySequence      uint64            `json:"readySequence,omitzero" cbor:"12,keyasint,omitempty" doc:"place among ready messages of equal priority"`
	OrderingKey        string            `json:"orderingKey,omitzero" cbor:"13,keyasint,omitempty" doc:"the message's ordering key"`
	FairnessKey        string            `json:"fairnessKey,omitzero" cbor:"14,keyasint,omitempty" doc:"the message's fairness key"`
	EnqueuedAt         Time              `json:"enqueuedAt" cbor:"15,keyasint" doc:"logged time at which the message was stored"`
	NotBefore          Time              `json:"notBefore,omitzero" cbor:"16,keyasint,omitempty" doc:"not delivered before this instant"`
	ExpiresAt          Time              `json:"expiresAt,omitzero" cbor:"17,keyasint,omitempty" doc:"not delivered from this instant on"`
	LeaseOwner         string            `json:"leaseOwner,omitzero" cbor:"18,keyasint,omitempty" doc:"principal that holds the lease"`
	SessionID          string            `json:"sessionId,omitzero" cbor:"19,keyasint,omitempty" doc:"the name that the holder of the lease gave itself when it asked"`
	LeaseUntil         Time              `json:"leaseUntil,omitzero" cbor:"20,keyasint,omitempty" doc:"deadline of the lease"`
	FirstLeasedAt      Time              `json:"firstLeasedAt,omitzero" cbor:"21,keyasint,omitempty" doc:"first claim of the current holder"`
	FinishedAt         Time              `json:"finishedAt,omitzero" cbor:"22,keyasint,omitempty" doc:"when the message reached a final state"`
	LastFailure        string            `json:"lastFailure,omitzero" cbor:"23,keyasint,omitempty" doc:"what the last worker that refused it wrote"`
	PayloadBytes       int64             `json:"payloadBytes" cbor:"24,keyasint" doc:"size of the payload"`
	StoredBytes        int64             `json:"storedBytes" cbor:"25,keyasint" doc:"what the message counts toward the queue's quota"`
	Headers            map[string]string `json:"headers,omitempty" cbor:"26,keyasint,omitempty" doc:"texts that travel beside the payload"`
	ContentType        string            `json:"contentType,omitzero" cbor:"27,keyasint,omitempty" doc:"media type of a byte payload"`
	Payload            JSON              `json:"payload,omitzero" cbor:"28,keyasint,omitempty" doc:"the JSON payload"`
	PayloadBase64      []byte            `json:"payloadBase64,omitempty" cbor:"29,keyasint,omitempty" doc:"the byte payload"`
	Redacted           []string          `json:"redacted,omitempty" cbor:"30,keyasint,omitempty" doc:"JSON pointers of the fields the caller may not see"`
}
