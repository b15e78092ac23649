package worker

import (
	"context"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// source is what deliveries come from: a lane or a group.
type source interface {
	// receive claims up to n deliveries and waits for the first one.
	receive(ctx context.Context, id string, n int) ([]parcel, error)
	// complete gives one outcome for each item, in order.
	complete(ctx context.Context, id string, items []api.CompleteItem) ([]outcome, error)
	process(ctx context.Context, id, token string, effects []api.Mutation) error
}

// parcel is one delivery of either kind.
type parcel struct {
	id      string // for the log
	attempt int64
	token   string
	lease   time.Duration // how long it was granted for
	headers map[string]string
	handle  func(context.Context, *Tx) error
}

// outcome is what became of one completed item.
type outcome struct {
	token string        // renew: the new token
	lease time.Duration // renew: how long it was granted for
	err   *fault.Error
}

// granted is the length of a lease by the store's clock alone.
func granted(until api.Time, r *api.Receipt) time.Duration {
	return until.Time().Sub(r.CommittedAt.Time())
}

// lane is a queue in a partition.
type lane struct {
	doer    api.Doer
	ref     api.LaneRef
	handle  func(context.Context, *Tx, *Message) error
	options Options
}

func (s *lane) receive(ctx context.Context, id string, n int) ([]parcel, error) {
	resp, err := api.Call(ctx, s.doer, api.QueuesReceive, &api.QueuesReceiveRequest{
		RequestID: id, Lane: s.ref, MaxMessages: int64(n), MaxBytes: receiveBytes, LeaseSeconds: seconds(s.options.Lease),
		WaitMillis: s.options.wait().Milliseconds(), SessionID: s.options.SessionID,
	})
	if err != nil {
		return nil, err
	}
	parcels := make([]parcel, len(resp.Deliveries))
	for i := range resp.Deliveries {
		m := &Message{Delivery: resp.Deliveries[i], Lane: s.ref}
		parcels[i] = parcel{
			id: m.MessageID, attempt: m.Attempt, token: m.Token, lease: granted(m.LeaseUntil, &resp.Receipt), headers: m.Headers,
			handle: func(ctx context.Context, tx *Tx) error { return s.handle(ctx, tx, m) },
		}
		m.Token, m.LeaseUntil = "", 0
	}
	return parcels, nil
}

func (s *lane) complete(ctx context.Context, id string, items []api.CompleteItem) ([]outcome, error) {
	resp, err := api.Call(ctx, s.doer, api.QueuesComplete, &api.QueuesCompleteRequest{CommandID: id, Lane: s.ref, Items: items})
	if err != nil {
		return nil, err
	}
	out := make([]outcome, len(resp.Results))
	for i := range resp.Results {
		r := &resp.Results[i]
		out[i] = outcome{token: r.Token, lease: granted(r.LeaseUntil, &resp.Receipt), err: r.Error}
	}
	return out, nil
}

func (s *lane) process(ctx context.Context, id, token string, effects []api.Mutation) error {
	_, err := api.Call(ctx, s.doer, api.QueuesProcess, &api.QueuesProcessRequest{
		CommandID: id, Lane: s.ref, Token: token, Effects: effects,
		HandlerScope: s.options.HandlerScope, ExecutionGeneration: s.options.ExecutionGeneration,
	})
	return err
}

// group is a subscription group of a topic or stream.
type group struct {
	doer    api.Doer
	ref     api.GroupRef
	handle  func(context.Context, *Tx, *Event) error
	options Options
}

func (s *group) receive(ctx context.Context, id string, n int) ([]parcel, error) {
	resp, err := api.Call(ctx, s.doer, api.SubscriptionsReceive, &api.SubscriptionsReceiveRequest{
		RequestID: id, Group: s.ref, MaxEvents: int64(n), MaxBytes: receiveBytes, LeaseSeconds: seconds(s.options.Lease),
		WaitMillis: s.options.wait().Milliseconds(), SessionID: s.options.SessionID, ExpectedGeneration: s.options.ExpectedGeneration,
	})
	if err != nil {
		return nil, err
	}
	parcels := make([]parcel, len(resp.Deliveries))
	for i := range resp.Deliveries {
		d := &resp.Deliveries[i]
		e := &Event{StoredEvent: d.Event, Group: s.ref, Attempt: d.Attempt, Redriven: d.Redriven}
		parcels[i] = parcel{
			id: e.EventID, attempt: d.Attempt, token: d.Token, lease: granted(d.LeaseUntil, &resp.Receipt), headers: e.Headers,
			handle: func(ctx context.Context, tx *Tx) error { return s.handle(ctx, tx, e) },
		}
	}
	return parcels, nil
}

func (s *group) complete(ctx context.Context, id string, items []api.CompleteItem) ([]outcome, error) {
	resp, err := api.Call(ctx, s.doer, api.SubscriptionsComplete, &api.SubscriptionsCompleteRequest{CommandID: id, Group: s.ref, Items: items})
	if err != nil {
		return nil, err
	}
	out := make([]outcome, len(resp.Results))
	for i := range resp.Results {
		r := &resp.Results[i]
		out[i] = outcome{token: r.Token, lease: granted(r.LeaseUntil, &resp.Receipt), err: r.Error}
	}
	return out, nil
}

func (s *group) process(ctx context.Context, id, token string, effects []api.Mutation) error {
	_, err := api.Call(ctx, s.doer, api.SubscriptionsProcess, &api.SubscriptionsProcessRequest{
		CommandID: id, Group: s.ref, Token: token, Effects: effects,
		HandlerScope: s.options.HandlerScope, ExecutionGeneration: s.options.ExecutionGeneration,
	})
	return err
}

const (
	// receiveBytes is the most one answer may carry: whatever fits into a message
	// fits into it.
	receiveBytes = 8 << 20
	// callItems is the most deliveries of one call.
	callItems = 256
)

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
