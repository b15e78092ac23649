package queue

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
func prepareComplete(d *op.Door, req *api.QueuesCompleteRequest) (changed bool, err error) {
	req.Items, changed = leasing.VetItems(d.Tokens, token.Delivery, req.Items)
	return changed, nil
}

// applyComplete carries out the items in order. An item that is refused changes
// nothing and the others go on.
func applyComplete(c *op.Ctx, req *api.QueuesCompleteRequest) (*api.QueuesCompleteResponse, error) {
	l, err := open(c, req.Lane.Queue)
	if err != nil {
		return nil, err
	}
	renewals := 0
	for i := range req.Items {
		if req.Items[i].Action == api.ActionRenew {
			renewals++
		}
	}
	l.alone = renewals == 1
	who := holder(l.owner, c.Principal)
	resp := &api.QueuesCompleteResponse{Results: make([]api.CompleteResult, len(req.Items))}
	for i := range req.Items {
		err := completeItem(l, &req.Items[i], &who, &resp.Results[i])
		if err == nil {
			continue
		}
		refused := fault.From(err)
		if refused == nil || refused.Code == fault.Corruption {
			return nil, err
		}
		refused.Recorded = true // in the command's receipt
		resp.Results[i] = api.CompleteResult{MessageID: resp.Results[i].MessageID, Error: refused}
	}
	return resp, l.close()
}

// completeItem checks one item and carries it out.
func completeItem(l *lane, item *api.CompleteItem, who *Claims, out *api.CompleteResult) error {
	x, err := scoped(item.Token, who)
	if err != nil {
		return err
	}
	out.MessageID = x.MessageID
	m, err := l.find(x.MessageID)
	if err != nil {
		return err
	}
	if err := live(&x, m, l.c.Now); err != nil {
		return err
	}
	switch item.Action {
	case api.ActionAck:
		ack(l, x.MessageID, m)
	case api.ActionNack:
		nack(l, x.MessageID, m, item)
	case api.ActionRenew:
		if err := extend(l, x.MessageID, m, item.LeaseSeconds); err != nil {
			return err
		}
		out.LeaseUntil, out.Token = api.Time(m.Lease.Until), who.unsealed(x.MessageID, m)
	case api.ActionRelease:
		release(l, x.MessageID, m)
	}
	out.State, out.StateVersion = m.State.name(), m.StateVersion
	if m.State == scheduled {
		out.NotBefore = api.Time(m.NotBefore)
	}
	return nil
}

// ack finishes a message.
func ack(l *lane, id string, m *message) {
	l.move(id, m, acked, 0)
	l.head.Totals.Acked++
}

// nack takes a refused message back: to wait, or to be put aside.
func nack(l *lane, id string, m *message, item *api.CompleteItem) {
	m.Failures++
	m.LastFailure = item.Failure
	l.head.Totals.Nacked++
	if item.Terminal {
		l.bury(id, m)
		return
	}
	wait := int64(0)
	if item.DelayMillis != nil {
		wait = *item.DelayMillis
	} else {
		wait = leasing.Backoff(l.c, &l.policy.Retry, m.Failures+m.LeaseLosses)
	}
	l.wait(id, m, leasing.After(l.c.Now, wait))
}

// release takes a message back as if it had not been claimed: the attempt is
// not counted and it keeps its place.
func release(l *lane, id string, m *message) {
	m.Attempts--
	switch {
	case m.isExpired(l.c.Now):
		l.expire(id, m)
	case m.exhausted(l.policy): // the limit was lowered meanwhile
		l.bury(id, m)
	default:
		l.move(id, m, ready, 0)
	}
}

// extend renews a lease. Errors: Validation beyond the policy's longest lease,
// ResourceExhausted when the lease is as old as it may get.
func extend(l *lane, id string, m *message, seconds int64) error {
	until, err := terms(l.policy).Renewed(m.Lease.First, m.Lease.Until, l.c.Now, seconds)
	if err != nil {
		return err
	}
	renew(l, id, m, until)
	return nil
}

// keepComplete is what a receipt stores of the results: ids stand in the tokens
// of the request, and a new token is derived again from three numbers.
func keepComplete(r *api.QueuesCompleteResponse) *api.QueuesCompleteResponse {
	kept := *r
	kept.Results = make([]api.CompleteResult, len(r.Results))
	for i, x := range r.Results {
		x.MessageID = ""
		if x.Token != "" {
			c, _ := readClaims([]byte(x.Token))
			x.Token = strconv.FormatUint(c.Generation, 10) + "." + strconv.FormatUint(c.LeaseVersion, 10) + "." + strconv.FormatUint(c.epoch, 10)
		}
		kept.Results[i] = x
	}
	return &kept
}

// recallComplete fills in what keepComplete left out.
func recallComplete(_ *op.Ctx, req *api.QueuesCompleteRequest, resp *api.QueuesCompleteResponse) error {
	for i := range resp.Results {
		out := &resp.Results[i]
		b, _ := token.Claims(req.Items[i].Token)
		x, ok := readClaims(b)
		if !ok || refusedByScope(out.Error) {
			continue
		}
		out.MessageID = x.MessageID
		if out.Token == "" {
			continue
		}
		if !x.setVersions(out.Token) {
			return fault.New(fault.Corruption, "receipt", "the stored receipt of this command cannot be read")
		}
		out.Token = string(x.append(nil))
	}
	return nil
}

// refusedByScope says that a result was refused before its message's id could
// be told.
func refusedByScope(e *fault.Error) bool {
	if e == nil {
		return false
	}
	switch e.Reason {
	case "other_incarnation", "bad_token", "other_lane", "other_principal", "policy_epoch":
		return true
	default:
		return false
	}
}

// setVersions reads "generation.leaseVersion.policyEpoch".
func (x *Claims) setVersions(text string) bool {
	for _, v := range []*uint64{&x.Generation, &x.LeaseVersion, &x.epoch} {
		end := 0
		for end < len(text) && text[end] != '.' {
			end++
		}
		n, err := strconv.ParseUint(text[:end], 10, 64)
		if err != nil {
			return false
		}
		*v = n
		text = text[min(end+1, len(text)):]
	}
	return true
}

// finishComplete seals the tokens of renewed leases.
func finishComplete(d *op.Door, _ *api.QueuesCompleteRequest, r *api.QueuesCompleteResponse) error {
	for i := range r.Results {
		if t := r.Results[i].Token; t != "" {
			r.Results[i].Token = d.Tokens.Seal(token.Delivery, []byte(t))
		}
	}
	return nil
}
