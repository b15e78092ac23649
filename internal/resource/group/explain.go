package group

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/source"
)

// runExplain says why a position is not being delivered.
func runExplain(v *op.View, req *api.SubscriptionsExplainRequest) (*api.SubscriptionsExplainResponse, error) {
	res, n, def, err := look(&v.Scope, req.Group)
	if err != nil {
		return nil, err
	}
	h, err := headOf(&v.Scope, def.ref(n))
	if err != nil {
		return nil, err
	}
	src, err := source.Look(&v.Scope, n.Source)
	if err != nil {
		return nil, err
	}
	x := &explainer{v: v, res: res, n: n, def: def, f: def.ref(n), h: h, src: &src}
	at := req.Position
	if at == 0 {
		if at, err = x.lowest(); err != nil {
			return nil, err
		}
	}
	x.resp = &api.SubscriptionsExplainResponse{Position: at}
	return x.resp, x.explain(at)
}

type explainer struct {
	v    *op.View
	res  *api.Resource
	n    name
	def  *definition
	f    ref
	h    *head
	src  *source.Head
	resp *api.SubscriptionsExplainResponse
}

// lowest is the lowest unfinished position, or the next one.
func (x *explainer) lowest() (uint64, error) {
	at, _, ok, err := first(&x.v.Scope, x.f, x.h)
	if !ok {
		at = x.h.Issued + 1
	}
	return at, err
}

func (x *explainer) say(s api.PositionState, reason, changedBy, detail string, args ...any) {
	x.resp.State, x.resp.Reason, x.resp.ChangedBy, x.resp.Detail = s, reason, changedBy, fmt.Sprintf(detail, args...)
}

func (x *explainer) explain(at uint64) error {
	switch {
	case at > x.src.Tail:
		x.say(api.PositionFuture, "noEvent", "publishing", "The source ends at position %d; no event has this position yet.", x.src.Tail)
		return nil
	case at > x.h.Issued:
		return x.explainPending(at)
	}
	r, ok, err := rows.Get(x.v.R, rowKey{x.f, at})
	if err != nil {
		return err
	}
	if !ok || r.isRun() {
		return x.explainFinished(at)
	}
	info := rowInfo(x.v.Now, at, &r)
	x.resp.Row = &info
	return x.explainRow(&r)
}

// explainFinished is for a position that the group is done with.
func (x *explainer) explainFinished(at uint64) error {
	dl, ok, err := deadLetters.Get(x.v.R, rowKey{x.f, at})
	switch {
	case err != nil:
		return err
	case ok && dl.State == dead:
		x.say(api.PositionDead, "deadLetter", "subscriptions.deadletters.redrive", "Its attempts were used up; its event waits among the dead letters for a person.")
	case ok:
		return x.explainRow(&row{entry: dl.entry})
	case at < x.src.First():
		x.say(api.PositionGone, "purged", "", "The group is done with it, and its event was purged; the first available position is %d.", x.src.First())
	default:
		x.say(api.PositionFinished, "finished", "subscriptions.seek", "It was acknowledged, skipped, or not matched by the filter; the group is done with it.")
	}
	return nil
}

// explainPending is for a position that was not issued yet.
func (x *explainer) explainPending(at uint64) error {
	if stopped, err := x.stopped(api.PositionPending); stopped || err != nil {
		return err
	}
	w, err := whyEmpty(&x.v.Scope, x.f, x.h, &x.def.Wanted.Policy, x.src.Tail)
	if err != nil {
		return err
	}
	p := &x.def.Wanted.Policy
	switch w.reason {
	case api.ReasonWindowFull, api.ReasonParkedHead:
		x.say(api.PositionPending, string(w.reason), fmt.Sprintf("finishing or skipping position %d", w.blockedBy),
			"maxWindow (%d) positions above the checkpoint are issued; position %d is the lowest unfinished one and holds all later ones back.", p.MaxWindow, w.blockedBy)
	case api.ReasonInFlightLimit:
		x.say(api.PositionPending, string(w.reason), "completing a delivery", "%d positions are leased, which is as many as maxInFlight allows.", x.h.inFlight())
	default:
		x.resp.Deliverable = at == x.h.Issued+1
		x.say(api.PositionPending, "ready", "subscriptions.receive", "It is among the next %d positions to be looked at; receives reach it in order.", at-x.h.Issued)
	}
	return nil
}

// stopped says what keeps every receive of the group from delivering.
func (x *explainer) stopped(s api.PositionState) (bool, error) {
	d, err := dispatch.State(x.v.R, x.v.Space.Shard)
	if err != nil {
		return false, err
	}
	switch {
	case d.Paused:
		x.say(s, string(api.ReasonDispatchPaused), "admin.dispatch", "The whole store is paused.")
	case x.res.Paused:
		x.say(s, string(api.ReasonPaused), "resources.configure with paused: false", "The %s is paused.", x.res.Kind)
	case x.h.FailureCode == restored:
		x.say(s, string(api.ReasonPaused), "subscriptions.resume", "The group is paused since the store was restored.")
	case x.h.FailureCode != "":
		x.say(s, string(api.ReasonPaused), "subscriptions.resume", "The group paused itself at position %d (%s).", x.h.FailedPosition, x.h.FailureCode)
	case x.h.Paused:
		x.say(s, string(api.ReasonPaused), "subscriptions.resume", "The group is paused.")
	default:
		gone, err := dataPrincipalGone(&x.v.Scope, x.res, x.def)
		if gone {
			x.say(s, string(api.ReasonDataPrincipal), "principals.configure, or subscriptions.configure with another", "The group's data principal does not exist, is revoked, or may not read the source, so nothing may be shown.")
		}
		return gone, err
	}
	return true, nil
}

// explainRow is for an unfinished position, or a dead letter that was redriven.
func (x *explainer) explainRow(r *row) error {
	s, out := r.State.name(), x.resp
	switch {
	case r.State == leased && r.Until > x.v.Now:
		out.Until = api.Time(r.Until)
		return x.explainLease(s, r)
	case r.State == leased:
		x.say(s, "leaseExpired", "subscriptions.receive", "Its lease ended at %s; the next receive or tick gives it back.", api.Time(r.Until))
	case r.State == blocked:
		x.say(s, string(api.ReasonKeyBlocked), "finishing the older position", "An older event of the same ordering key is unfinished.")
	case r.State == held:
		x.explainHeld(s)
	default:
		if stopped, err := x.stopped(s); stopped || err != nil {
			return err
		}
		x.explainWaiting(s, r)
	}
	return nil
}

// explainLease names the holder.
func (x *explainer) explainLease(s api.PositionState, r *row) error {
	l, _, err := leases.Get(x.v.R, timeKey{x.f, r.Until, r.Batch})
	x.say(s, "leased", "completing the delivery", "Principal %q holds it since %s.", l.Principal, api.Time(r.First))
	if x.resp.Row != nil {
		x.resp.Row.Holder, x.resp.Row.SessionID = l.Principal, l.Session
	}
	return err
}

func (x *explainer) explainHeld(s api.PositionState) {
	const acts = "subscriptions.skip, or subscriptions.deadletters.redrive"
	if x.def.Wanted.Policy.OnExhausted == api.ExhaustedDeadLetter {
		x.say(s, "deadLettersFull", acts, "Its attempts are used up and there was no room among the dead letters (maxEvents, maxBytes of the policy's deadLetter). Room that subscriptions.deadletters.discard makes serves later ones; this one waits for a person.")
		return
	}
	x.say(s, "held", acts, "Its attempts are used up and the policy holds it for a person.")
}

func (x *explainer) explainWaiting(s api.PositionState, r *row) {
	switch {
	case r.State == waiting && r.NotBefore > x.v.Now:
		x.resp.Until = api.Time(r.NotBefore)
		x.say(s, string(api.ReasonScheduled), "", "It failed and waits for its next attempt.")
	case x.h.inFlight() >= x.def.Wanted.Policy.MaxInFlight:
		x.say(s, string(api.ReasonInFlightLimit), "completing a delivery", "As many positions are leased as maxInFlight allows.")
	default:
		x.resp.Deliverable = true
		x.say(s, "ready", "subscriptions.receive", "The next receive with room for it may claim it.")
	}
}
