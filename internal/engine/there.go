package engine

import (
	"context"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// waitingThere carries the call out on the node that leads its shard. It is as waiting is
// here: between its attempts the call is parked, on that node, and before each of them
// it makes room, on this one, which holds the answer until it is read.
func waitingThere(ctx context.Context, c *call) (any, error) {
	attempt := c.roomy(func(ctx context.Context) (any, error) { return forward(ctx, c) })
	if c.h.WaitMillis == nil || c.h.WaitMillis(c.req) == 0 {
		return attempt(ctx)
	}
	deadline := time.Now().Add(time.Duration(c.h.WaitMillis(c.req)) * time.Millisecond)
	again := true
	for {
		resp, err := attempt(ctx)
		if err != nil || !c.h.WaitAgain(resp) {
			return resp, err
		}
		left := time.Until(deadline).Milliseconds()
		if left <= 0 {
			c.h.WaitExpired(resp)
			return resp, nil
		}
		var p parkedThere
		if err := askLeader(ctx, c, callWait, forwarded{Left: left, Due: c.h.WaitUntil(resp), Look: again}, &p); err != nil {
			return nil, err
		}
		again = !p.Seen // what a look takes for something and an attempt does not must not be asked for over and over
	}
}

// parkedThere is why a parked call should try again.
type parkedThere struct {
	Seen bool `cbor:"1,keyasint,omitempty"` // there may be something already
}

// askLeader asks the node that leads the call's shard about it.
func askLeader(ctx context.Context, c *call, kind byte, f forwarded, resp any) error {
	request, err := wire.EncodeLog(c.req)
	if err != nil {
		return fault.New(fault.Validation, "not_encodable", "the request cannot be encoded: %v", err)
	}
	f.Op, f.Tenant, f.Principal, f.Key, f.Request = c.h.Op.Number, c.who.tenant, c.who.principal, c.who.key, request
	body, err := wire.EncodeLog(f)
	if err != nil {
		return err
	}
	b, err := c.cluster.peers.Call(ctx, c.node, kind, body)
	if (kind == callWait || c.h.Op.Kind == api.Query) && fault.CodeOf(err) == fault.UnknownWriteOutcome {
		return fault.New(fault.OwnershipLost, "leader_lost", "the node that leads shard %d went away; nothing happened. Ask again", c.shard)
	}
	if err != nil {
		return err
	}
	return wire.DecodeLog(b, resp)
}

// forward hands one attempt of the call to the node that leads its shard, which hands it
// on no more.
func forward(ctx context.Context, c *call) (any, error) {
	resp := c.h.NewResponse()
	return resp, askLeader(ctx, c, callDo, forwarded{}, resp)
}

// park keeps a call of another node, which found nothing, until there may be something.
// A wake-up goes to it for good: should that node be lost before it tries again, the
// others notice at their recheck.
func park(ctx context.Context, c *call, f *forwarded) (*parkedThere, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	if !c.parked.take(c.who.tenant) {
		return nil, fullyParked(c.Engine)
	}
	defer c.parked.leave(c.who.tenant)
	w, err := enlist(ctx, c)
	if err != nil {
		return nil, err
	}
	defer w.Done(false)
	left, due := time.Duration(f.Left)*time.Millisecond, f.Due
	if f.Look { // it may have come after the attempt and before this call
		resp, err := seen(ctx, c)
		if err != nil {
			return nil, err
		}
		if resp == nil || !c.h.WaitAgain(resp) {
			return &parkedThere{Seen: true}, nil
		}
		due = c.h.WaitUntil(resp)
	}
	_, err = c.pause(ctx, w.C, min(left, recheck, max(c.until(due), time.Millisecond)))
	return &parkedThere{}, err
}

// seen is the answer to a call where that is certain without a place in the log, else
// nil.
func seen(ctx context.Context, c *call) (any, error) {
	if c.h.Run != nil {
		return c.query(ctx)
	}
	return certain(ctx, c, here{c.Engine}.read)
}
