package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// keeper renews the leases of the deliveries that are worked on, and tells
// their handlers when one is lost.
type keeper struct {
	mu   sync.Mutex // guards the lease of every delivery
	held map[*delivery]struct{}
	next time.Time     // when the keeper looks again
	kick chan struct{} // has a value when it must look earlier
}

// lease is what a delivery is held by.
type lease struct {
	token   string
	until   time.Time     // from here on it may have ended
	renewAt time.Time     // zero when it is not renewed any more
	stopAt  time.Time     // when the handler's time is up; zero for never
	pending chan struct{} // closed when the renewal under way is decided; nil without one
	lost    error         // why it is lost
}

// nextRenewal is when a lease is renewed: when a third of what is left of it has
// passed, so that two more tries are left.
func nextRenewal(until time.Time) time.Time {
	now := time.Now()
	return now.Add(until.Sub(now) / 3)
}

func (k *keeper) hold(h *delivery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[h] = struct{}{}
	k.wake(h.lease.renewAt)
}

// wake makes the keeper look at an instant, or earlier.
func (k *keeper) wake(at time.Time) {
	if at.IsZero() || !k.next.IsZero() && !at.Before(k.next) {
		return
	}
	k.next = at
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// cancelAll ends the contexts of all handlers. Their leases are not renewed any
// more: they run out unless the handlers return in time.
func (k *keeper) cancelAll(cause error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for h := range k.held {
		h.lease.renewAt = time.Time{}
		k.wake(h.lease.until)
		h.cancel(cause)
	}
}

// release takes a delivery out of the keeper's hands. A renewal under way is
// waited for: it decides which token holds.
func (k *keeper) release(h *delivery) (token string, until time.Time, lost error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, h)
	for h.lease.pending != nil {
		pending := h.lease.pending
		k.mu.Unlock()
		<-pending
		k.mu.Lock()
	}
	if h.lease.lost == nil && !time.Now().Before(h.lease.until) {
		h.lease.lost = ErrLeaseLost
	}
	return h.lease.token, h.lease.until, h.lease.lost
}

// lose ends a lease for this worker.
func (h *delivery) lose(why error) {
	h.lease.lost = ErrLeaseLost
	if why != nil {
		h.lease.lost = fmt.Errorf("%w: %w", ErrLeaseLost, why)
	}
	h.lease.renewAt = time.Time{}
	h.cancel(h.lease.lost)
}

// keep looks after the leases until quit.
func (r *run) keep(quit <-chan struct{}) {
	t := time.NewTimer(maxLease)
	defer t.Stop()
	for {
		if wait := r.look(); wait >= 0 {
			t.Reset(wait)
		} else {
			t.Stop()
		}
		select {
		case <-t.C:
		case <-r.kick:
		case <-quit:
			return
		}
	}
}

// look ends what has ended, renews what is due, and says when to look again; a
// negative answer is never.
func (r *run) look() time.Duration {
	now := time.Now()
	// What is due soon goes along with what is due now.
	soon := now.Add(r.Lease / 12)
	var due []*delivery
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = time.Time{}
	for h := range r.held {
		x := &h.lease
		switch {
		case x.lost != nil:
			continue
		case !now.Before(x.until):
			h.lose(nil)
			continue
		case !x.stopAt.IsZero() && !now.Before(x.stopAt):
			x.renewAt = time.Time{}
		case x.pending == nil && !x.renewAt.IsZero() && !x.renewAt.After(soon):
			due = append(due, h)
		}
		at := x.until
		if x.pending == nil && x.renewAt.After(soon) {
			at = x.renewAt
		}
		if r.next.IsZero() || at.Before(r.next) {
			r.next = at
		}
	}
	for len(due) > 0 {
		n := min(len(due), callItems)
		r.renewLater(due[:n])
		due = due[n:]
	}
	if r.next.IsZero() {
		return -1
	}
	return r.next.Sub(now)
}

// renewLater begins a renewal; the caller holds mu.
func (r *run) renewLater(due []*delivery) {
	pending := make(chan struct{})
	items := make([]api.CompleteItem, len(due))
	last := time.Time{}
	for i, h := range due {
		h.lease.pending = pending
		items[i] = api.CompleteItem{Token: h.lease.token, Action: api.ActionRenew, LeaseSeconds: seconds(r.Lease)}
		if h.lease.until.After(last) {
			last = h.lease.until
		}
	}
	r.calls.Go(func() { r.renew(due, items, last, pending) })
}

// renew prolongs leases with one command. It is repeated under the same id until
// its outcome is known: the token that holds is in the answer.
func (r *run) renew(due []*delivery, items []api.CompleteItem, last time.Time, pending chan struct{}) {
	ctx, cancel := context.WithDeadline(r.alive, last)
	defer cancel()
	id, sent := api.NewCommandID(), time.Now()
	var outcomes []outcome
	err := r.repeat(ctx, func(ctx context.Context) (err error) {
		outcomes, err = r.source.complete(ctx, id, items)
		return err
	})
	if err != nil {
		r.trouble("leases could not be renewed", nil, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(pending)
	for i, h := range due {
		h.lease.pending = nil
		switch {
		case err != nil && leaseGone(fault.From(err)):
			h.lose(err)
		case err != nil:
			h.lease.renewAt = time.Time{} // it holds until it ends
		default:
			r.renewed(h, &outcomes[i], sent)
		}
		r.wake(h.lease.until)
		r.wake(h.lease.renewAt)
	}
}

// renewed takes the answer for one lease.
func (r *run) renewed(h *delivery, o *outcome, sent time.Time) {
	x := &h.lease
	switch {
	case x.lost != nil: // the answer came too late; the handler was told to end
	case leaseGone(o.err):
		h.lose(o.err)
	case o.err != nil:
		x.renewAt = time.Time{} // it cannot be prolonged: it holds until it ends
		r.log.Warn("a lease cannot be renewed further", "id", h.id, "until", x.until, "reason", o.err.Reason)
	default:
		x.token, x.until = o.token, sent.Add(o.lease)
		if !x.renewAt.IsZero() { // its handler may go on
			x.renewAt = nextRenewal(x.until)
		}
	}
}
