package api

import (
	"fmt"
	"strconv"

	"github.com/keyload/keyload/fault"
)

// QueuesReceiveAcrossLanes claims messages of several queues in one call.
var QueuesReceiveAcrossLanes = Define[QueuesReceiveAcrossLanesRequest, QueuesReceiveAcrossLanesResponse](Operation{
	Name: "queues.receive-across-lanes", Number: 46, Kind: Composite, Scope: NodeScope, Capability: CapQueuesConsume,
	Summary: "Claim messages of up to eight queues, one after the other",
	Doc: "Carries out up to eight receives in their order, each as if it were sent alone: authorized, claimed and recorded under " +
		"an id of its own. The whole is checked before the first: no lane and no id twice, and together they ask for no more than one " +
		"receive may, 256 messages, 8 MiB and 20 s of waiting. A receive that waits holds up those after it. " +
		"There is one outcome for each, in order: committed with the exact answer of that receive, rejected with its error, unknown where " +
		"it may have happened, which stops the rest, or notAttempted. Nothing is undone for another lane's sake, and the whole has no " +
		"receipt: to settle a lost answer, repeat the unchanged receives, alone or together. A call that is cancelled after a receive was " +
		"submitted ends with UnknownWriteOutcome; before that nothing has happened.",
})

// QueuesReceiveAcrossLanesRequest lists the receives. Each needs a requestId of its
// own; Call derives the absent ones from that of the whole (PartID).
type QueuesReceiveAcrossLanesRequest struct {
	RequestID string                 `json:"requestId" cbor:"1,keyasint" format:"uuid" doc:"your name for the whole; nothing is recorded under it"`
	Requests  []QueuesReceiveRequest `json:"requests" cbor:"2,keyasint" minItems:"1" maxItems:"8" doc:"receives in their order, each of another lane and with an id of its own"`
}

// PartStatus is what became of one part of a composite operation.
type PartStatus string

// What became of a part.
const (
	PartCommitted    PartStatus = "committed"    // it was done, or answered from its receipt
	PartRejected     PartStatus = "rejected"     // it was refused
	PartUnknown      PartStatus = "unknown"      // it may have happened; no part after it was attempted
	PartNotAttempted PartStatus = "notAttempted" // it was not submitted
)

// LaneOutcome is what became of one receive.
type LaneOutcome struct {
	RequestID string                 `json:"requestId" cbor:"1,keyasint" doc:"identity of the receive"`
	Status    PartStatus             `json:"status" cbor:"2,keyasint" enum:"committed,rejected,unknown,notAttempted" doc:"what became of it"`
	Result    *QueuesReceiveResponse `json:"result,omitzero" cbor:"3,keyasint,omitempty" doc:"its answer, when committed"`
	Error     *fault.Error           `json:"error,omitzero" cbor:"4,keyasint,omitempty" doc:"why not, when rejected or unknown"`
}

// QueuesReceiveAcrossLanesResponse has one outcome for each receive, in order.
type QueuesReceiveAcrossLanesResponse struct {
	RequestID string        `json:"requestId" cbor:"1,keyasint" doc:"your name for the whole"`
	Outcomes  []LaneOutcome `json:"outcomes" cbor:"2,keyasint" doc:"what became of each receive, in the order of the request"`
}

// Bounds of all receives together: those of a single one.
const (
	acrossMessages   = 256
	acrossBytes      = 8 << 20
	acrossWaitMillis = 20_000
)

// Check wants every lane and every id once, and the sums within the bounds.
func (r *QueuesReceiveAcrossLanesRequest) Check() (found []fault.Violation) {
	report := func(path, format string, args ...any) {
		found = append(found, fault.Violation{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	lanes, ids := map[LaneRef]bool{}, map[string]bool{r.RequestID: true}
	var messages, bytes, wait int64
	for i := range r.Requests {
		part, at := &r.Requests[i], "/requests/"+strconv.Itoa(i)
		if lanes[part.Lane] {
			report(at+"/lane", "is that of another of the requests; ask for each lane once")
		}
		if ids[part.RequestID] {
			report(at+"/requestId", "is that of the whole or of another of the requests; each needs its own")
		}
		lanes[part.Lane], ids[part.RequestID] = true, true
		messages, bytes, wait = messages+part.MaxMessages, bytes+part.MaxBytes, wait+part.WaitMillis
	}
	for _, sum := range []struct {
		name     string
		is, most int64
	}{{"maxMessages", messages, acrossMessages}, {"maxBytes", bytes, acrossBytes}, {"waitMillis", wait, acrossWaitMillis}} {
		if sum.is > sum.most {
			report("/requests", "ask for %s of %d together, at most %d", sum.name, sum.is, sum.most)
		}
	}
	return found
}

// GetCommandID is the caller's name for the whole.
func (r *QueuesReceiveAcrossLanesRequest) GetCommandID() string { return r.RequestID }

// SetCommandID sets it.
func (r *QueuesReceiveAcrossLanesRequest) SetCommandID(id string) { r.RequestID = id }

// NameParts gives each receive that has no id the one derived from the whole's, in
// a list of the request's own.
func (r *QueuesReceiveAcrossLanesRequest) NameParts() {
	own := make([]QueuesReceiveRequest, len(r.Requests))
	for i := range r.Requests {
		own[i] = r.Requests[i]
		if own[i].RequestID == "" {
			own[i].RequestID = PartID(r.RequestID, i)
		}
	}
	r.Requests = own
}

// needs is nothing: each receive is authorized when its turn comes.
func (r *QueuesReceiveAcrossLanesRequest) needs() []Need { return nil }
