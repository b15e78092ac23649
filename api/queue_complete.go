package api

import "github.com/keyload/keyload/fault"

// QueuesComplete finishes, returns or prolongs deliveries.
var QueuesComplete = Define[QueuesCompleteRequest, QueuesCompleteResponse](Operation{
	Name: "queues.complete", Number: 9, Kind: Command, Scope: PartitionScope, Capability: CapQueuesConsume,
	Summary: "Acknowledge, refuse, renew or release deliveries",
	Doc: "Each item has its own outcome; one bad token does not undo the others. ack finishes the message; nack returns it " +
		"after a delay, or dead-letters it when terminal or out of attempts; renew prolongs the lease; release returns it " +
		"at once and does not count the attempt. A stale or expired lease changes nothing.",
})

// CompleteAction is what to do with a delivery.
type CompleteAction string

// The actions.
const (
	ActionAck     CompleteAction = "ack"     // finished
	ActionNack    CompleteAction = "nack"    // failed: retry later, or dead-letter
	ActionRenew   CompleteAction = "renew"   // hold it longer
	ActionRelease CompleteAction = "release" // give it back without counting the attempt
)

// defaultRenewSeconds is the lease a renewal gives when it names none.
const defaultRenewSeconds = 30

// CompleteItem is what to do with one delivery.
type CompleteItem struct {
	Token        string         `json:"token" cbor:"1,keyasint" minLength:"1" maxLength:"512" doc:"token of the delivery"`
	Action       CompleteAction `json:"action" cbor:"2,keyasint" enum:"ack,nack,renew,release" doc:"what to do"`
	DelayMillis  *int64         `json:"delayMillis,omitzero" cbor:"3,keyasint,omitempty" minimum:"0" maximum:"2592000000" doc:"nack: wait before the next attempt; by the retry policy when absent"`
	Failure      string         `json:"failure,omitzero" cbor:"4,keyasint,omitempty" maxLength:"1024" doc:"nack: why, for people"`
	Terminal     bool           `json:"terminal,omitzero" cbor:"5,keyasint,omitempty" doc:"nack: dead-letter at once"`
	LeaseSeconds int64          `json:"leaseSeconds,omitzero" cbor:"6,keyasint,omitempty" minimum:"1" maximum:"43200" doc:"renew: length of the lease from now; 30 when absent"`
}

// SetDefaults gives a renewal its length.
func (i *CompleteItem) SetDefaults() {
	if i.Action == ActionRenew && i.LeaseSeconds == 0 {
		i.LeaseSeconds = defaultRenewSeconds
	}
}

// Check refuses fields that the action does not use.
func (i *CompleteItem) Check() []fault.Violation {
	var v []fault.Violation
	only := func(given bool, path string, a CompleteAction) {
		if given && i.Action != a {
			v = append(v, fault.Violation{Path: path, Message: "is only used with the action " + string(a)})
		}
	}
	only(i.DelayMillis != nil, "/delayMillis", ActionNack)
	only(i.Failure != "", "/failure", ActionNack)
	only(i.Terminal, "/terminal", ActionNack)
	only(i.LeaseSeconds != 0, "/leaseSeconds", ActionRenew)
	if i.Terminal && i.DelayMillis != nil {
		v = append(v, fault.Violation{Path: "/delayMillis", Message: "cannot be given together with terminal"})
	}
	return v
}

// QueuesCompleteRequest completes deliveries of one lane.
type QueuesCompleteRequest struct {
	CommandID string         `json:"commandId" cbor:"1,keyasint" format:"uuid" doc:"your stable identity of this write"`
	Lane      LaneRef        `json:"lane" cbor:"2,keyasint" doc:"queue the deliveries came from"`
	Items     []CompleteItem `json:"items" cbor:"3,keyasint" minItems:"1" maxItems:"256" doc:"what to do with each delivery"`
}

// CompleteResult is what became of one item. A refused item has an error and,
// where it is known and may be told, the message's id.
type CompleteResult struct {
	MessageID    string       `json:"messageId,omitzero" cbor:"1,keyasint,omitempty" doc:"id of the message"`
	State        MessageState `json:"state,omitzero" cbor:"2,keyasint,omitempty" enum:"scheduled,ready,leased,acked,deadLettered,pendingDeadLetter,expired,cancelled" doc:"where the message is now"`
	StateVersion uint64       `json:"stateVersion,omitzero" cbor:"3,keyasint,omitempty" doc:"new state version of the message"`
	LeaseUntil   Time         `json:"leaseUntil,omitzero" cbor:"4,keyasint,omitempty" doc:"renew: new deadline"`
	Token        string       `json:"token,omitzero" cbor:"5,keyasint,omitempty" doc:"renew: new token, which replaces the old one"`
	NotBefore    Time         `json:"notBefore,omitzero" cbor:"6,keyasint,omitempty" doc:"nack: when the next attempt is due"`
	Error        *fault.Error `json:"error,omitzero" cbor:"7,keyasint,omitempty" doc:"why the item changed nothing"`
}

// QueuesCompleteResponse is what became of the items.
type QueuesCompleteResponse struct {
	Receipt Receipt          `json:"receipt" cbor:"1,keyasint" doc:"proof of the commit"`
	Results []CompleteResult `json:"results" cbor:"2,keyasint" doc:"one result per item, in order"`
}

// TargetPartition is the lane's partition.
func (r *QueuesCompleteRequest) TargetPartition() PartitionRef { return r.Lane.Partition }

// GetCommandID is the caller's identity of the write.
func (r *QueuesCompleteRequest) GetCommandID() string { return r.CommandID }

// SetCommandID sets it.
func (r *QueuesCompleteRequest) SetCommandID(id string) { r.CommandID = id }

func (r *QueuesCompleteRequest) resourceName() string { return r.Lane.Queue }
