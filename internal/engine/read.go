package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/wake"
)

func random(b []byte) { rand.Read(b) }

// query runs a query on a snapshot and answers once what it saw is durable.
func (c *call) query(ctx context.Context) (resp any, err error) {
	if r, ok := c.req.(interface{ GetMinToken() *api.CommitToken }); ok {
		if err := c.reached(r.GetMinToken()); err != nil {
			return nil, err
		}
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	if c.h.Op.Scope == api.PartitionScope { // the others tell an operator what goes on, when there is no turn to be had too
		if err := c.queries.take(ctx, c.who.tenant); err != nil {
			return nil, err
		}
		defer c.queries.done(c.who.tenant)
	}
	reading := c.read
	if c.h.Op.Scope == api.NodeScope {
		reading = here{c.Engine}.read
	}
	err = reading(ctx, c.shard, func(s *kv.Snapshot) error {
		resp, err = c.h.Run(c.view(s.Within(ctx)), c.req)
		return err
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = fault.New(fault.BudgetExceeded, "deadline", "the query ran for %d seconds, its limit; ask for less at once", limits.QuerySeconds)
	case errors.Is(err, context.Canceled):
		err = fault.New(fault.Cancelled, "cancelled", "the caller stopped waiting")
	}
	return resp, err
}

// bounded gives a query its deadline; a long one ends with its caller or the store.
func (c *call) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if !c.h.Op.Long {
		return context.WithTimeout(ctx, limits.QuerySeconds*time.Second)
	}
	return untilClosing(ctx, c.Engine)
}

// reached makes sure that the snapshot to come shows the point a commit token
// names: an applied position is visible at once.
func (c *call) reached(t *api.CommitToken) error {
	switch {
	case t == nil:
		return nil
	case t.Incarnation != uuid.UUID(c.identity.Incarnation).String():
		return fault.New(fault.TokenInvalidated, "other_incarnation", "the commit token belongs to another history of this store")
	case t.Partition != c.scope.Partition:
		return fault.Invalid("/minToken", "names another partition than the request")
	case t.Position > c.log.Status(c.shard).Applied:
		return fault.New(fault.TokenInvalidated, "future_position", "the commit token names a position this store has not reached")
	}
	return nil
}

// recheck bounds the delay of a lost wake-up.
const recheck = time.Second

// waiting repeats an attempt whose answer is empty until something may have
// changed, for as long as the request wants to wait. The call is parked outside
// the log: it holds no place in it and writes nothing.
func (c *call) waiting(ctx context.Context, attempt func(context.Context) (any, error)) (any, error) {
	attempt = c.roomy(attempt)
	if c.given || c.h.WaitMillis == nil || c.h.WaitMillis(c.req) == 0 { // the node that gave it waits for it
		return attempt(ctx)
	}
	if !c.parked.take(c.who.tenant) {
		return c.unparked(ctx, attempt)
	}
	defer c.parked.leave(c.who.tenant)
	w, err := enlist(ctx, c)
	if err != nil {
		return nil, err
	}
	// Whoever was woken and then failed owes the wake-up to another: what it was
	// woken for is still there.
	owed := false
	defer func() { w.Done(owed) }()
	deadline := time.Now().Add(time.Duration(c.h.WaitMillis(c.req)) * time.Millisecond)
	for {
		resp, err := attempt(ctx)
		if err != nil {
			return nil, err
		}
		if !c.h.WaitAgain(resp) {
			owed = false
			return resp, nil
		}
		until := c.until(c.h.WaitUntil(resp))
		owed = owed && until <= 0 // else it looked and there was nothing
		pause := time.Until(deadline)
		if pause <= 0 {
			c.h.WaitExpired(resp)
			return resp, nil
		}
		woken, err := c.pause(ctx, w.C, min(pause, recheck, max(until, time.Millisecond)))
		owed = owed || woken
		if err != nil {
			return nil, err
		}
		if err := c.authorize(ctx); err != nil {
			return nil, err
		}
	}
}

// enlist lets the hub know what a call waits for, before the call looks: what appears
// in between is not missed.
func enlist(ctx context.Context, c *call) (*wake.Waiter, error) {
	var keys []string
	var class string
	err := c.read(ctx, c.shard, func(s *kv.Snapshot) (err error) {
		keys, class, err = c.h.WaitKeys(c.view(s), c.req)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.hub.Wait(class, keys...), nil
}

// unparked answers a call that may not wait: with what there is, or that the node
// is busy.
func (c *call) unparked(ctx context.Context, attempt func(context.Context) (any, error)) (any, error) {
	resp, err := attempt(ctx)
	if err == nil && c.h.WaitAgain(resp) {
		return nil, fullyParked(c.Engine)
	}
	return resp, err
}

func fullyParked(e *Engine) error {
	return Busy("admission_parked", "as many calls wait for something to deliver as the node takes, or half of that from one tenant; %d do", e.parked.taken())
}

// until is how long it takes until an instant at which trying again makes sense though
// nothing wakes the call, 0 where none is known; 0 or less is at once.
func (c *call) until(at int64) time.Duration {
	if at == 0 {
		return recheck
	}
	return time.Duration(at-c.clock.millis()) * time.Millisecond
}

// pause waits for a hint, at most so long; woken says that it took one.
func (c *call) pause(ctx context.Context, hint <-chan struct{}, d time.Duration) (woken bool, err error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-hint:
		return true, nil
	case <-t.C:
		return false, nil
	case <-ctx.Done():
		return false, fault.New(fault.Cancelled, "cancelled", "the caller stopped waiting; nothing was claimed")
	case <-c.closing:
		return false, fault.New(fault.OwnershipLost, "store_closed", "the store is closing; nothing was claimed")
	}
}
