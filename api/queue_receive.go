package api

// QueuesReceive claims messages.
var QueuesReceive = Define[QueuesReceiveRequest, QueuesReceiveResponse](Operation{
	Name: "queues.receive", Number: 8, Kind: Command, Scope: PartitionScope, Capability: CapQueuesConsume,
	Summary: "Claim messages of a queue under a lease",
	Doc: "Claims up to maxMessages ready messages: lowest priority number first, then fair share, then the order in which " +
		"they became ready. Each is held until its lease ends; then another worker may get it. An empty answer says why. " +
		"Repeating the same requestId answers the same deliveries while every lease of them is live.",
})

// QueuesReceiveRequest asks for messages.
type QueuesReceiveRequest struct {
	RequestID    string  `json:"requestId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this receive; it is the command id"`
	Lane         LaneRef `json:"lane" cbor:"2,keyasint" doc:"queue to receive from"`
	MaxMessages  int64   `json:"maxMessages,omitzero" cbor:"3,keyasint,omitempty" default:"1" minimum:"1" maximum:"256" doc:"most messages to claim"`
	MaxBytes     int64   `json:"maxBytes,omitzero" cbor:"4,keyasint,omitempty" default:"1048576" minimum:"1" maximum:"8388608" doc:"most bytes to claim"`
	LeaseSeconds int64   `json:"leaseSeconds,omitzero" cbor:"5,keyasint,omitempty" default:"30" minimum:"1" maximum:"43200" doc:"how long the messages are held; the queue's policy may allow less"`
	WaitMillis   int64   `json:"waitMillis,omitzero" cbor:"6,keyasint,omitempty" minimum:"0" maximum:"20000" doc:"how long to wait for the first message"`
	SessionID    string  `json:"sessionId,omitzero" cbor:"7,keyasint,omitempty" format:"identifier" doc:"your name for the worker that asks; inspecting a message shows it with the lease, nothing else depends on it"`
}

// EmptyReason says why a receive claimed nothing.
type EmptyReason string

// Why a receive claimed nothing.
const (
	ReasonEmpty         EmptyReason = "empty"         // the lane has no unfinished message that waits
	ReasonScheduled     EmptyReason = "scheduled"     // the next message is due at nextDueAt
	ReasonInFlightLimit EmptyReason = "inFlightLimit" // as much is leased as the policy allows
	ReasonKeyBlocked    EmptyReason = "keyBlocked"    // every ready message waits for an older one of its key
	ReasonScanLimit     EmptyReason = "scanLimit"     // progress was made, nothing found yet: call again
	ReasonWaitElapsed   EmptyReason = "waitElapsed"   // nothing became ready within waitMillis
)

// ReceiveExamined says how much a receive looked at.
type ReceiveExamined struct {
	Scheduled int64 `json:"scheduled,omitzero" cbor:"1,keyasint,omitempty" doc:"scheduled entries looked at"`
	Expired   int64 `json:"expired,omitzero" cbor:"2,keyasint,omitempty" doc:"expired leases looked at"`
	Ready     int64 `json:"ready,omitzero" cbor:"3,keyasint,omitempty" doc:"ready entries looked at"`
}

// QueuesReceiveResponse is what was claimed. An empty answer that needed no log
// entry has a receipt without a position.
type QueuesReceiveResponse struct {
	Receipt    Receipt         `json:"receipt,omitzero" cbor:"1,keyasint" doc:"proof of the claim; absent from an answer that needed no commit"`
	Deliveries []Delivery      `json:"deliveries" cbor:"2,keyasint" doc:"claimed messages in delivery order"`
	Reason     EmptyReason     `json:"reason,omitzero" cbor:"3,keyasint,omitempty" enum:"empty,scheduled,inFlightLimit,keyBlocked,scanLimit,waitElapsed" doc:"why there is no delivery"`
	NextDueAt  Time            `json:"nextDueAt,omitzero" cbor:"4,keyasint,omitempty" doc:"when the next message or lease is due, when nothing was delivered"`
	Examined   ReceiveExamined `json:"examined,omitzero" cbor:"5,keyasint" doc:"what the receive cost"`
}

// TargetPartition is the lane's partition.
func (r *QueuesReceiveRequest) TargetPartition() PartitionRef { return r.Lane.Partition }

// GetCommandID is the caller's identity of the receive.
func (r *QueuesReceiveRequest) GetCommandID() string { return r.RequestID }

// SetCommandID sets it.
func (r *QueuesReceiveRequest) SetCommandID(id string) { r.RequestID = id }

func (r *QueuesReceiveRequest) resourceName() string { return r.Lane.Queue }
