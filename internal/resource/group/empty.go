package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// why is the reason for which nothing can be claimed.
type why struct {
	reason    api.EmptyReason
	blockedBy uint64
	next      int64 // when the next retry or lease is due
}

// explainEmpty says why nothing was claimed.
func explainEmpty(s *op.Scope, f ref, h *head, p *api.GroupPolicy, tail uint64, more bool, resp *api.SubscriptionsReceiveResponse) error {
	if more {
		resp.Reason = api.ReasonScanLimit
		return nil
	}
	w, err := whyEmpty(s, f, h, p, tail)
	resp.Reason, resp.BlockedBy, resp.NextDueAt = w.reason, w.blockedBy, api.Time(w.next)
	return err
}

// whyEmpty is the one limit that stands in the way of a group with nothing due:
// the window, then the leases, then what the unfinished positions wait for. The
// first two name the position that holds new ones back.
func whyEmpty(s *op.Scope, f ref, h *head, p *api.GroupPolicy, tail uint64) (w why, err error) {
	if w.next, err = nextDue(s, f, h); err != nil {
		return w, err
	}
	onward := tail > h.Issued
	full := h.inFlight() >= p.MaxInFlight && (onward || h.claimable() > 0)
	switch {
	case full || onward && h.Matched >= p.MaxWindow:
		at, e, ok, err := first(s, f, h)
		if err != nil {
			return w, err
		}
		w.reason, w.blockedBy = api.ReasonWindowFull, at
		switch {
		case !onward || h.Matched < p.MaxWindow:
			w.reason = api.ReasonInFlightLimit
		case ok && e.State == held:
			w.reason = api.ReasonParkedHead
		}
	case h.waiting() > 0:
		w.reason = api.ReasonScheduled
	case h.Counts[blocked] > 0:
		w.reason = api.ReasonKeyBlocked
	default:
		w.reason = api.ReasonEmpty
	}
	return w, nil
}

// mayFind says that a receive would look for something: what cheapReceive leaves
// to the log.
func mayFind(h *head, p *api.GroupPolicy, tail uint64, now int64) bool {
	due := func(at int64) bool { return at != 0 && at <= now }
	if due(h.First.Wait) || due(h.First.Lease) {
		return true
	}
	room := h.inFlight() < p.MaxInFlight
	return room && (h.claimable() > 0 || tail > h.Issued && h.Matched < p.MaxWindow)
}

// nextDue is the exact instant at which the next retry or lease is due; 0 when
// there is none.
func nextDue(s *op.Scope, f ref, h *head) (int64, error) {
	next := int64(0)
	if h.waiting() > 0 {
		at, err := firstAt(s, &waits, f, h.First.Wait)
		if err != nil {
			return 0, err
		}
		next = at
	}
	if h.inFlight() > 0 {
		at, err := firstAt(s, &leases, f, h.First.Lease)
		if err != nil {
			return 0, err
		}
		next = leasing.Earlier(next, at)
	}
	return next, nil
}

// firstAt is the first instant of an index by instant, from a lower bound on.
func firstAt[V any](s *op.Scope, t *table.Table[timeKey, V], f ref, bound int64) (at int64, err error) {
	err = t.Scan(s.R, instants(f, bound), func(k timeKey, _ *V) (bool, error) {
		at = k.When
		return false, nil
	})
	return at, err
}

// cheapReceive answers without the log when it is certain that a receive finds
// nothing and moves nothing.
func cheapReceive(v *op.View, req *api.SubscriptionsReceiveRequest) (*api.SubscriptionsReceiveResponse, error) {
	res, n, def, err := look(&v.Scope, req.Group)
	if err != nil {
		return nil, nil // the log decides, and keeps the refusal
	}
	h, err := headOf(&v.Scope, def.ref(n))
	if err != nil {
		return nil, err
	}
	if err := mayReceive(&v.Scope, res, n.Group, def, h, req); err != nil {
		if fault.CodeOf(err) == fault.DispatchPaused {
			return nil, err // it leaves no receipt either way
		}
		return nil, nil
	}
	if _, err := dataPrincipal(&v.Scope, res, def); err != nil {
		return nil, nil // a worker that waits shall hear of it
	}
	src, err := source.Look(&v.Scope, n.Source)
	if err != nil {
		return nil, err
	}
	if h.Checkpoint+1 < src.First() || mayFind(h, &def.Wanted.Policy, src.Tail, v.Now) {
		return nil, nil
	}
	resp := &api.SubscriptionsReceiveResponse{Deliveries: []api.GroupDelivery{}, Generation: h.Generation}
	return resp, explainEmpty(&v.Scope, def.ref(n), h, &def.Wanted.Policy, src.Tail, false, resp)
}

// waitReceive parks an empty receive until an event is published, or something of
// the group is ready or due.
func waitReceive() *op.Wait[api.SubscriptionsReceiveRequest, api.SubscriptionsReceiveResponse] {
	return &op.Wait[api.SubscriptionsReceiveRequest, api.SubscriptionsReceiveResponse]{
		Millis: func(r *api.SubscriptionsReceiveRequest) int64 { return r.WaitMillis },
		Keys: func(v *op.View, r *api.SubscriptionsReceiveRequest) ([]string, string, error) {
			_, n, def, err := look(&v.Scope, r.Group)
			if err != nil {
				return nil, "", err
			}
			own := wakeKey(def.ref(n))
			return []string{source.WakeKey(n.Source), own}, own, nil
		},
		Again: func(r *api.SubscriptionsReceiveResponse) bool { return len(r.Deliveries) == 0 },
		Until: func(r *api.SubscriptionsReceiveResponse) int64 {
			if r.Reason == api.ReasonScanLimit {
				return 1 // progress was made: at once
			}
			return int64(r.NextDueAt)
		},
		Expired: func(r *api.SubscriptionsReceiveResponse) {
			if r.Reason == api.ReasonEmpty {
				r.Reason = api.ReasonWaitElapsed
			}
		},
	}
}
