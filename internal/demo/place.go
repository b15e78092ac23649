package demo

import (
	"context"
	"encoding/json"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

// place is what competing workers take deliveries from: the queue or a group.
type place interface {
	receive(ctx context.Context) ([]job, error)
	// complete carries out one item. A renewal answers what the lease is now.
	complete(ctx context.Context, item api.CompleteItem) (lease, error)
	// process commits the effects of a job with its acknowledgement.
	process(ctx context.Context, j *job) (already bool, err error)
	// empty says that nothing is left to wait for.
	empty(ctx context.Context) (bool, error)
}

// job is one delivery with what its handler makes of it.
type job struct {
	id      string // of the message or event
	attempt int64
	lease
	effects []api.Mutation
}

type lease struct {
	token string
	until api.Time
}

// gone says that an error is about a lease that does not hold any more: another
// worker has the delivery, or had it and finished it.
func gone(err error) bool {
	switch f := fault.From(err); {
	case f == nil:
		return false
	case f.Code == fault.LeaseExpired || f.Code == fault.StaleLease:
		return true
	default:
		return f.Code == fault.NotFound && f.Reason == "unknown_delivery"
	}
}

const (
	leaseSeconds = 1   // short, so that what a killed process held comes back soon
	waitMillis   = 250 // how long a receive waits for a delivery
	// maxAttempts is enough for every failure, crash and kill; what still fails
	// then shows as a dead letter.
	maxAttempts = 100
)

func retries() api.RetryPolicy { return api.RetryPolicy{BaseMillis: 50, MaxMillis: 400} }

// lanePlace is the queue of notices.
type lanePlace struct{ calls client.Calls }

func (p *lanePlace) receive(ctx context.Context) ([]job, error) {
	got, err := p.calls.Receive(ctx, &api.QueuesReceiveRequest{Lane: lane(), LeaseSeconds: leaseSeconds, WaitMillis: waitMillis})
	if err != nil {
		return nil, err
	}
	var jobs []job
	for i := range got.Deliveries {
		d := &got.Deliveries[i]
		effects, err := noticeEffects(d)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job{d.MessageID, d.Attempt, lease{d.Token, d.LeaseUntil}, effects})
	}
	return jobs, nil
}

func (p *lanePlace) complete(ctx context.Context, item api.CompleteItem) (lease, error) {
	got, err := p.calls.Complete(ctx, lane(), item)
	if err != nil {
		return lease{}, err
	}
	if e := got.Results[0].Error; e != nil {
		return lease{}, e
	}
	return lease{got.Results[0].Token, got.Results[0].LeaseUntil}, nil
}

func (p *lanePlace) process(ctx context.Context, j *job) (bool, error) {
	got, err := p.calls.Process(ctx, &api.QueuesProcessRequest{Lane: lane(), Token: j.token, HandlerScope: handlerScope, Effects: j.effects})
	if err != nil {
		return false, err
	}
	return got.AlreadyProcessed, nil
}

func (p *lanePlace) empty(ctx context.Context) (bool, error) {
	s, err := p.calls.QueueStatus(ctx, lane())
	if err != nil {
		return false, err
	}
	return s.Counts.Ready+s.Counts.Scheduled+s.Counts.Leased == 0, nil
}

// noticeEffects depend on the message alone. None of them is protected by
// itself against being applied twice: each would show it.
func noticeEffects(d *api.Delivery) ([]api.Mutation, error) {
	var n notice
	if err := json.Unmarshal(d.Payload, &n); err != nil {
		return nil, err
	}
	text := n.text()
	return []api.Mutation{
		keyload.Put(notified, d.MessageID, noticeDocument{n.Repository, n.Event, text}),
		keyload.Append(effects, effectsStream, keyload.Event(effectType, effectPayload{d.MessageID, text})),
		{PatchDocument: &api.PatchDocument{Collection: totals, ID: totalsID, Patches: []api.Patch{
			{Op: api.PatchIncrement, Path: "/" + n.Event, Value: api.Of(1)},
		}}},
	}, nil
}

// noticeDocument is the document a message leaves.
type noticeDocument struct {
	Repository string `json:"repository"`
	Event      string `json:"event"`
	Text       string `json:"text"`
}

// effectPayload is the payload of the event a message leaves.
type effectPayload struct {
	Message string `json:"message"`
	Text    string `json:"text"`
}

// groupPlace is a subscription group.
type groupPlace struct {
	doer  api.Doer
	group *group
}

func (p *groupPlace) receive(ctx context.Context) ([]job, error) {
	got, err := api.Call(ctx, p.doer, api.SubscriptionsReceive, &api.SubscriptionsReceiveRequest{
		Group: p.group.ref(), LeaseSeconds: leaseSeconds, WaitMillis: waitMillis,
	})
	if err != nil {
		return nil, err
	}
	var jobs []job
	for i := range got.Deliveries {
		d := &got.Deliveries[i]
		jobs = append(jobs, job{d.Event.EventID, d.Attempt, lease{d.Token, d.LeaseUntil}, p.group.effectsOf(&d.Event)})
	}
	return jobs, nil
}

func (p *groupPlace) complete(ctx context.Context, item api.CompleteItem) (lease, error) {
	got, err := api.Call(ctx, p.doer, api.SubscriptionsComplete, &api.SubscriptionsCompleteRequest{
		Group: p.group.ref(), Items: []api.CompleteItem{item},
	})
	if err != nil {
		return lease{}, err
	}
	if e := got.Results[0].Error; e != nil {
		return lease{}, e
	}
	return lease{got.Results[0].Token, got.Results[0].LeaseUntil}, nil
}

func (p *groupPlace) process(ctx context.Context, j *job) (bool, error) {
	got, err := api.Call(ctx, p.doer, api.SubscriptionsProcess, &api.SubscriptionsProcessRequest{
		Group: p.group.ref(), Token: j.token, HandlerScope: p.group.name, Effects: j.effects,
	})
	if err != nil {
		return false, err
	}
	return got.AlreadyProcessed, nil
}

func (p *groupPlace) empty(ctx context.Context) (bool, error) {
	s, err := api.Call(ctx, p.doer, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: p.group.ref(), Rows: 1})
	if err != nil {
		return false, err
	}
	return s.State.Checkpoint == s.State.Tail, nil
}

// remaining is how long a lease still holds by this machine's clock, which is
// also the store's.
func (l *lease) remaining() time.Duration { return time.Until(l.until.Time()) }
