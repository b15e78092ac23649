package api

// What an enqueue does when the message id is stored already.
const (
	IfExistsFail   = "fail"   // Conflict
	IfExistsReturn = "return" // success marked duplicate when the content is equal
)

// Enqueue stores a message in a queue.
type Enqueue struct {
	Queue    string  `json:"queue" cbor:"1,keyasint" format:"identifier" doc:"name of the queue"`
	Message  Message `json:"message" cbor:"2,keyasint" doc:"the message"`
	IfExists string  `json:"ifExists,omitzero" cbor:"3,keyasint,omitempty" default:"fail" enum:"fail,return" doc:"what to do when the message id is stored already"`
}

// Need is the right to enqueue.
func (m *Enqueue) Need() Need { return Need{CapQueuesPublish, m.Queue} }

// CancelMessage withdraws a message that is not finished.
type CancelMessage struct {
	Queue                      string `json:"queue" cbor:"1,keyasint" format:"identifier" doc:"name of the queue"`
	MessageID                  string `json:"messageId" cbor:"2,keyasint" format:"identifier" doc:"id of the message"`
	ExpectedStateVersion       uint64 `json:"expectedStateVersion" cbor:"3,keyasint" minimum:"1" doc:"state version the message must have"`
	ExpectedDeliveryGeneration uint64 `json:"expectedDeliveryGeneration" cbor:"4,keyasint" minimum:"1" doc:"delivery generation the message must have"`
}

// Need is the right to manage the queue.
func (m *CancelMessage) Need() Need { return Need{CapQueuesManage, m.Queue} }

// RescheduleMessage moves the time of a message that waits.
type RescheduleMessage struct {
	Queue                      string `json:"queue" cbor:"1,keyasint" format:"identifier" doc:"name of the queue"`
	MessageID                  string `json:"messageId" cbor:"2,keyasint" format:"identifier" doc:"id of the message"`
	ExpectedStateVersion       uint64 `json:"expectedStateVersion" cbor:"3,keyasint" minimum:"1" doc:"state version the message must have"`
	ExpectedDeliveryGeneration uint64 `json:"expectedDeliveryGeneration" cbor:"4,keyasint" minimum:"1" doc:"delivery generation the message must have"`
	NotBefore                  Time   `json:"notBefore" cbor:"5,keyasint" doc:"not delivered before this instant"`
}

// Need is the right to manage the queue.
func (m *RescheduleMessage) Need() Need { return Need{CapQueuesManage, m.Queue} }

// RedriveMessage delivers a dead letter again, with its attempts at zero.
type RedriveMessage struct {
	Queue                      string `json:"queue" cbor:"1,keyasint" format:"identifier" doc:"name of the queue"`
	MessageID                  string `json:"messageId" cbor:"2,keyasint" format:"identifier" doc:"id of the message"`
	ExpectedStateVersion       uint64 `json:"expectedStateVersion" cbor:"3,keyasint" minimum:"1" doc:"state version the message must have"`
	ExpectedDeliveryGeneration uint64 `json:"expectedDeliveryGeneration" cbor:"4,keyasint" minimum:"1" doc:"delivery generation the message must have"`
	NotBefore                  Time   `json:"notBefore,omitzero" cbor:"5,keyasint,omitempty" doc:"not delivered before this instant"`
}

// Need is the right to redrive.
func (m *RedriveMessage) Need() Need { return Need{CapDeadLettersRedrive, m.Queue} }
