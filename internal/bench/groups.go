package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
)

const (
	// fanOut is how many groups read the topic of E.
	fanOut = 10
	// aheadBatches is how many batches the publisher of E may be ahead of the
	// slowest group: enough that no group waits for it, few enough that what was
	// published at the end of a run was also delivered.
	aheadBatches = 16
)

func groupRef(i int) api.GroupRef {
	return api.GroupRef{Source: topic, Group: fmt.Sprintf("bench-%d", i)}
}

// configureGroups makes n groups at the beginning of the topic.
func (b *bed) configureGroups(ctx context.Context, n int) error {
	for i := range n {
		_, err := api.Call(ctx, b.doer, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{
			Group: groupRef(i), Definition: api.GroupDefinition{Policy: api.GroupPolicy{
				MaxWindow: limits.GroupWindow, MaxInFlight: limits.GroupWindow, MaxLeaseSeconds: limits.LeaseSeconds,
			}},
		})
		if err != nil {
			return err
		}
	}
	b.groups = n
	return nil
}

// subscribing claims and acknowledges batches of events of one group.
type subscribing struct {
	bed      *bed
	receive  api.SubscriptionsReceiveRequest
	complete api.SubscriptionsCompleteRequest
}

func newSubscribing(b *bed, group, batch int) subscribing {
	ref := groupRef(group)
	return subscribing{
		bed:      b,
		receive:  api.SubscriptionsReceiveRequest{Group: ref, MaxEvents: int64(batch), MaxBytes: limits.ReceiveBytes},
		complete: api.SubscriptionsCompleteRequest{Group: ref, Items: make([]api.CompleteItem, 0, batch)},
	}
}

// take claims up to as many events as a batch has; 0 when there is none.
func (s *subscribing) take(ctx context.Context, r *recorder) (int, error) {
	start := time.Now()
	resp, err := api.Call(ctx, s.bed.doer, api.SubscriptionsReceive, &s.receive)
	if err != nil {
		return 0, err
	}
	r.since(stepReceive, start)
	r.claimed += int64(len(resp.Deliveries))
	s.complete.Items = s.complete.Items[:0]
	for i := range resp.Deliveries {
		s.complete.Items = append(s.complete.Items, api.CompleteItem{Token: resp.Deliveries[i].Token, Action: api.ActionAck})
		if s.bed.observe != nil {
			s.bed.observe(fmt.Sprint(s.receive.Group.Group, resp.Deliveries[i].Event.Position))
		}
	}
	return len(resp.Deliveries), nil
}

// ack finishes what take claimed.
func (s *subscribing) ack(ctx context.Context, r *recorder) error {
	start := time.Now()
	resp, err := api.Call(ctx, s.bed.doer, api.SubscriptionsComplete, &s.complete)
	if err != nil {
		return err
	}
	for i := range resp.Results {
		if f := resp.Results[i].Error; f != nil {
			return f
		}
	}
	r.since(stepComplete, start)
	r.finished += int64(len(resp.Results))
	return nil
}

// holdPosition publishes events, claims the first position of a group and keeps
// it.
func holdPosition(ctx context.Context, b *bed) error {
	if err := b.configureGroups(ctx, 1); err != nil {
		return err
	}
	p := newPublisher(b, 0)
	var r recorder
	defer func() { b.done.add(r.tally) }()
	for b.loaded.Store(0); b.loaded.Load() < int64(min(1+b.held, limits.GroupWindow)); {
		n, err := p.cycle(ctx, &r)
		if err != nil {
			return err
		}
		b.loaded.Add(int64(n))
	}
	head := newSubscribing(b, 0, 1)
	head.receive.LeaseSeconds = limits.LeaseSeconds
	_, err := head.take(ctx, &r)
	return err
}

// follower is the client of DG: it drains a group whose first position is held.
type follower struct{ subscribing }

func newFollower(b *bed, _ int) cycler { return &follower{newSubscribing(b, 0, b.workload.Batch)} }

func (f *follower) cycle(ctx context.Context, r *recorder) (int, error) {
	n, err := f.take(ctx, r)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, errDone
	}
	return n, f.ack(ctx, r)
}

// fan is what the clients of E share: how far each group is behind.
type fan struct {
	mu        sync.Mutex
	moved     chan struct{} // closed and made anew when a group has finished something
	published int64
	finished  [fanOut]int64
}

func fanTopic(ctx context.Context, b *bed) error {
	b.fan = &fan{moved: make(chan struct{})}
	return b.configureGroups(ctx, fanOut)
}

// ahead says how far the publisher is ahead of the slowest group, and what to wait
// for when that is too far.
func (f *fan) ahead() (int64, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	slowest := f.finished[0]
	for _, n := range f.finished {
		slowest = min(slowest, n)
	}
	return f.published - slowest, f.moved
}

func (f *fan) note(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.moved)
	f.moved = make(chan struct{})
}

// newFanClient is the publisher for the first client and a group's worker for the
// others. What a group of them finished counts as the messages of the run.
func newFanClient(b *bed, number int) cycler {
	if number == 0 {
		return &fanPublisher{newPublisher(b, 0).(*publisher), b.fan}
	}
	return &fanWorker{newSubscribing(b, number-1, b.workload.Batch), b.fan, number - 1}
}

type fanPublisher struct {
	*publisher
	fan *fan
}

// idle bounds how long a client of E waits for another before it looks at the time
// again.
const idle = 20 * time.Millisecond

func (p *fanPublisher) cycle(ctx context.Context, r *recorder) (int, error) {
	if ahead, moved := p.fan.ahead(); ahead >= int64(aheadBatches*p.batch) {
		t := time.NewTimer(idle)
		defer t.Stop()
		select {
		case <-moved:
		case <-t.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		return 0, nil
	}
	n, err := p.publisher.cycle(ctx, r)
	p.fan.note(func() { p.fan.published += int64(n) })
	return 0, err
}

type fanWorker struct {
	subscribing
	fan   *fan
	group int
}

func (w *fanWorker) cycle(ctx context.Context, r *recorder) (int, error) {
	w.receive.WaitMillis = idle.Milliseconds()
	n, err := w.take(ctx, r)
	if err != nil || n == 0 {
		return 0, err
	}
	if err := w.ack(ctx, r); err != nil {
		return 0, err
	}
	w.fan.note(func() { w.fan.finished[w.group] += int64(n) })
	if w.group != 0 {
		n = 0
	}
	return n, nil
}

// verifyGroups compares what the clients saw of groups with what the store
// counted.
func (b *bed) verifyGroups(ctx context.Context) error {
	delivered, acked, lost := int64(0), int64(0), int64(0)
	for i := range b.groups {
		s, err := api.Call(ctx, b.doer, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: groupRef(i)})
		if err != nil {
			return err
		}
		delivered += s.Totals.Delivered
		acked += s.Totals.Acked
		lost += s.Totals.LeasesLost
	}
	var wrong []error
	for _, x := range []struct {
		what           string
		clients, store int64
	}{
		{"events delivered to groups", b.done.claimed, delivered},
		{"events acknowledged by groups", b.done.finished, acked},
		{"leases of groups that ran out", 0, lost},
	} {
		if x.clients != x.store {
			wrong = append(wrong, fmt.Errorf("%s: the clients count %d, the store %d", x.what, x.clients, x.store))
		}
	}
	return errors.Join(wrong...)
}
