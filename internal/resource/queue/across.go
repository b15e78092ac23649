package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
)

// acrossParts are the receives, each what its caller would have sent alone: to
// repeat one alone is to repeat the same command.
func acrossParts(req *api.QueuesReceiveAcrossLanesRequest) []op.Part {
	out := make([]op.Part, len(req.Requests))
	for i := range out {
		out[i] = op.Part{Op: api.QueuesReceive.Operation, Req: &req.Requests[i]}
	}
	return out
}

func joinAcross(req *api.QueuesReceiveAcrossLanesRequest, outcomes []op.PartOutcome) *api.QueuesReceiveAcrossLanesResponse {
	resp := &api.QueuesReceiveAcrossLanesResponse{RequestID: req.RequestID, Outcomes: make([]api.LaneOutcome, len(outcomes))}
	for i, o := range outcomes {
		l := api.LaneOutcome{RequestID: req.Requests[i].RequestID, Status: o.Status, Error: o.Err}
		l.Result, _ = o.Response.(*api.QueuesReceiveResponse) // nil unless it is committed
		resp.Outcomes[i] = l
	}
	return resp
}
