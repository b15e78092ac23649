package group

import (
	"strconv"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/token"
)

// prepareComplete keeps tokens that do not hold out of the log. Each item has
// its own outcome, so the command goes on without them.
func prepareComplete(d *op.Door, req *api.SubscriptionsCompleteRequest) (changed bool, err error) {
	req.Items, changed = leasing.VetItems(d.Tokens, token.GroupDelivery, req.Items)
	return changed, nil
}

// applyComplete carries out the items in order. An item that is refused changes
// nothing and the others go on.
func applyComplete(c *op.Ctx, req *api.SubscriptionsCompleteRequest) (*api.SubscriptionsCompleteResponse, error) {
	g, err := open(c, req.Group)
	if err != nil {
		return nil, err
	}
	who := holder(g)
	resp := &api.SubscriptionsCompleteResponse{Results: make([]api.PositionResult, len(req.Items))}
	for i := range req.Items {
		err := completeItem(g, &req.Items[i], &who, &resp.Results[i])
		if err == nil {
			continue
		}
		refused := fault.From(err)
		if refused == nil || refused.Code == fault.Corruption {
			return nil, err
		}
		refused.Recorded = true // in the command's receipt
		resp.Results[i] = api.PositionResult{Position: resp.Results[i].Position, Error: refused}
	}
	if err := g.close(); err != nil {
		return nil, err
	}
	resp.Checkpoint = g.head.Checkpoint
	return resp, nil
}

// completeItem checks one item and carries it out.
func completeItem(g *group, item *api.CompleteItem, who *claims, out *api.PositionResult) error {
	x, err := scoped(item.Token, who)
	if err != nil {
		return err
	}
	out.Position = x.place.Position
	e, dl, err := g.placed(x.place)
	if err != nil {
		return err
	}
	if err := live(&x, e, g.c.Now); err != nil {
		return err
	}
	switch item.Action {
	case api.ActionAck:
		return ack(g, x.place, e, dl, out)
	case api.ActionNack:
		err = nack(g, x.place, e, dl, item)
	case api.ActionRenew:
		if err := extend(g, x.place, e, dl, item.LeaseSeconds); err != nil {
			return err
		}
		out.LeaseUntil, out.Token = api.Time(e.Until), who.unsealed(x.place, e.Batch)
	case api.ActionRelease:
		e.Attempts--
		err = g.move(x.place, e, ready, dl)
	}
	if err != nil {
		return err
	}
	return tell(g, x.place, e, out)
}

// tell says where a place is after an item.
func tell(g *group, p place, e *entry, out *api.PositionResult) error {
	now, _, err := g.placed(p)
	switch {
	case err != nil:
		return err
	case now == nil: // it was given up, and its position is finished
		out.State = api.PositionDead
	default:
		out.State, out.NotBefore = now.State.name(), api.Time(now.NotBefore)
	}
	return nil
}

// ack finishes a place.
func ack(g *group, p place, e *entry, dl *deadLetter, out *api.PositionResult) error {
	out.State = api.PositionFinished
	g.head.Totals.Acked++
	if dl == nil {
		return g.finish(p.Position, e)
	}
	return discard(g, p, dl)
}

// discard removes a dead letter.
func discard(g *group, p place, dl *deadLetter) error {
	if err := g.leave(p, &dl.entry); err != nil {
		return err
	}
	deadLetters.Delete(g.c.Tx, rowKey{g.ref, p.Position})
	g.head.DeadBytes -= int64(len(dl.Event))
	return nil
}

// nack takes a refused place back: to wait, or as one whose attempts are used
// up.
func nack(g *group, p place, e *entry, dl *deadLetter, item *api.CompleteItem) error {
	e.Failures++
	e.LastFailure = item.Failure
	g.head.Totals.Nacked++
	if item.Terminal {
		return exhaust(g, p, e, dl)
	}
	wait := int64(0)
	if item.DelayMillis != nil {
		wait = *item.DelayMillis
	} else {
		wait = leasing.Backoff(g.c, &g.policy.Retry, e.Failures+e.LeaseLosses)
	}
	return retry(g, p, e, dl, leasing.After(g.c.Now, wait))
}

// extend renews a lease: the place moves to a lease row of this command. Errors:
// Validation beyond the policy's longest lease, ResourceExhausted when the lease
// is as old as it may get.
func extend(g *group, p place, e *entry, dl *deadLetter, seconds int64) error {
	until, err := terms(g.policy).Renewed(e.First, e.Until, g.c.Now, seconds)
	if err != nil {
		return err
	}
	old, err := g.leaseOf(e)
	if err != nil {
		return err
	}
	if err := old.remove(p); err != nil {
		return err
	}
	l := renewal(g, until, old.row.Session)
	l.row.Places = append(l.row.Places, p.code())
	l.left++
	e.Until, e.Batch = until, l.key.Seq
	g.head.First.Lease = leasing.Earlier(g.head.First.Lease, until)
	g.store(p, e, dl)
	return nil
}

// renewal is the lease row of this command's renewals until an instant.
func renewal(g *group, until int64, session string) *heldLease {
	for _, l := range g.held {
		if l.made && l.key.When == until && l.row.Session == session {
			return l
		}
	}
	g.head.Batch++
	l := &heldLease{
		key: timeKey{g.ref, until, g.head.Batch}, made: true,
		row: lease{Principal: g.c.Principal.ID, Epoch: g.c.Principal.PolicyEpoch, Session: session},
	}
	g.held = append(g.held, l)
	return l
}

// keepComplete is what a receipt stores of the results: a new token is derived
// again from its lease version.
func keepComplete(r *api.SubscriptionsCompleteResponse) *api.SubscriptionsCompleteResponse {
	kept := *r
	kept.Results = make([]api.PositionResult, len(r.Results))
	for i, x := range r.Results {
		if x.Token != "" {
			c, _ := readClaims([]byte(x.Token))
			x.Token = strconv.FormatUint(c.version, 10)
		}
		kept.Results[i] = x
	}
	return &kept
}

// recallComplete derives the new tokens of renewals again.
func recallComplete(_ *op.Ctx, req *api.SubscriptionsCompleteRequest, resp *api.SubscriptionsCompleteResponse) error {
	for i := range resp.Results {
		out := &resp.Results[i]
		if out.Token == "" {
			continue
		}
		b, _ := token.Claims(req.Items[i].Token)
		x, ok := readClaims(b)
		version, err := strconv.ParseUint(out.Token, 10, 64)
		if !ok || err != nil {
			return fault.New(fault.Corruption, "receipt", "the stored receipt of this command cannot be read")
		}
		out.Token = x.unsealed(x.place, version)
	}
	return nil
}

// finishComplete seals the tokens of renewed leases.
func finishComplete(d *op.Door, _ *api.SubscriptionsCompleteRequest, r *api.SubscriptionsCompleteResponse) error {
	for i := range r.Results {
		if t := r.Results[i].Token; t != "" {
			r.Results[i].Token = d.Tokens.Seal(token.GroupDelivery, []byte(t))
		}
	}
	return nil
}
