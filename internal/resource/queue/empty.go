package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// explainEmpty says why nothing was claimed.
func explainEmpty(l *lane, f *found, resp *api.QueuesReceiveResponse) error {
	if f.scanned || l.again {
		resp.Reason = api.ReasonScanLimit
		return nil
	}
	due, err := nextDue(&l.c.Scope, l.owner, &l.head)
	if err != nil {
		return err
	}
	resp.Reason, resp.NextDueAt = emptyReason(&l.head), api.Time(due)
	return nil
}

// emptyReason is why a lane with nothing due and nothing to claim is empty.
func emptyReason(h *head) api.EmptyReason {
	switch {
	case h.Counts[ready] > 0:
		return api.ReasonInFlightLimit
	case h.Counts[scheduled] > 0:
		return api.ReasonScheduled
	default:
		return api.ReasonEmpty
	}
}

// nextDue is the exact instant at which the next scheduled message or lease is
// due; 0 when there is none.
func nextDue(s *op.Scope, owner table.Owner, h *head) (int64, error) {
	next := int64(0)
	if h.Counts[scheduled] > 0 {
		at, err := firstAt(s, &schedules, owner, h.First.Scheduled)
		if err != nil {
			return 0, err
		}
		next = at
	}
	if h.Counts[leased] > 0 {
		at, err := firstAt(s, &leases, owner, h.First.Lease)
		if err != nil {
			return 0, err
		}
		next = leasing.Earlier(next, at)
	}
	return next, nil
}

// firstAt is the first instant of an index by instant, from a lower bound on.
func firstAt[V any](s *op.Scope, t *table.Table[timeKey, V], owner table.Owner, bound int64) (at int64, err error) {
	from := codec.AppendInt64(owner.Append(nil), bound)
	err = t.Scan(s.R, table.Range{Prefix: owner.Append(nil), From: from}, func(k timeKey, _ *V) (bool, error) {
		at = k.When
		return false, nil
	})
	return at, err
}

// cheapReceive answers without the log when it is certain that a receive finds
// nothing: nothing is due, and nothing is ready or nothing more may be leased.
func cheapReceive(v *op.View, req *api.QueuesReceiveRequest) (*api.QueuesReceiveResponse, error) {
	res, owner, err := directory.Resolve(&v.Scope, req.Lane.Queue, api.KindQueue)
	if err != nil {
		return nil, nil // the log decides, and keeps the refusal
	}
	if err := dispatch.MayDeliver(&v.Scope); err != nil {
		return nil, err
	}
	if res.Paused {
		return nil, pausedQueue(res)
	}
	if req.LeaseSeconds > res.Queue.MaxLeaseSeconds {
		return nil, nil
	}
	h, _, err := heads.Get(v.R, owner)
	if err != nil {
		return nil, err
	}
	due := func(at int64) bool { return at != 0 && at <= v.Now }
	if due(h.First.Scheduled) || due(h.First.Lease) {
		return nil, nil
	}
	if h.Counts[ready] > 0 {
		if blocked, err := inFlightBlocks(v, owner, &h, res.Queue); err != nil || !blocked {
			return nil, err
		}
	}
	next, err := nextDue(&v.Scope, owner, &h)
	if err != nil {
		return nil, err
	}
	return &api.QueuesReceiveResponse{
		Deliveries: []api.Delivery{}, Reason: emptyReason(&h), NextDueAt: api.Time(next),
	}, nil
}

// inFlightBlocks says whether the next ready message may not be leased beside
// what is leased already. It reads that one entry, and only when it must.
func inFlightBlocks(v *op.View, owner table.Owner, h *head, p *api.QueuePolicy) (bool, error) {
	if full(h, p) || !nearlyFull(h, p) {
		return full(h, p), nil
	}
	_, e, err := firstReady(&v.Scope, owner, h)
	if err != nil || e == nil {
		return false, err
	}
	expired := e.ExpiresAt != 0 && e.ExpiresAt <= v.Now
	return !expired && int64(e.Charge) > p.MaxInFlightBytes-h.InFlightBytes, nil
}

// firstReady is the entry that is claimed next; nil when none is ready.
func firstReady(s *op.Scope, owner table.Owner, h *head) (k readyKey, e *readyEntry, err error) {
	for p := range h.Ready {
		if h.Ready[p].Count == 0 {
			continue
		}
		from := appendReady(nil, readyKey{Owner: owner, Priority: uint8(p), Seq: h.Ready[p].Floor})
		err = readies.Scan(s.R, table.Range{Prefix: owner.Append(nil), From: from}, func(at readyKey, v *readyEntry) (bool, error) {
			k, e = at, v
			return false, nil
		})
		return k, e, err
	}
	return k, nil, nil
}

// waitReceive parks an empty receive until something is ready or due.
func waitReceive() *op.Wait[api.QueuesReceiveRequest, api.QueuesReceiveResponse] {
	return &op.Wait[api.QueuesReceiveRequest, api.QueuesReceiveResponse]{
		Millis: func(r *api.QueuesReceiveRequest) int64 { return r.WaitMillis },
		Keys: func(v *op.View, r *api.QueuesReceiveRequest) ([]string, string, error) {
			_, owner, err := directory.Resolve(&v.Scope, r.Lane.Queue, api.KindQueue)
			if err != nil {
				return nil, "", err
			}
			key := wakeKey(owner)
			return []string{key, queueKey(owner)}, key, nil
		},
		Again: func(r *api.QueuesReceiveResponse) bool { return len(r.Deliveries) == 0 },
		Until: func(r *api.QueuesReceiveResponse) int64 {
			if r.Reason == api.ReasonScanLimit {
				return 1 // progress was made: at once
			}
			return int64(r.NextDueAt)
		},
		Expired: func(r *api.QueuesReceiveResponse) { r.Reason = api.ReasonWaitElapsed },
	}
}
