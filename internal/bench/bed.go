package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
)

// bed is a store with the topic and the queue, and what the clients did so far.
type bed struct {
	target
	workload Workload
	payloads []api.JSON
	backlog  int // messages that wait before C begins
	held     int // messages behind the one that is held, for D and DG
	groups   int // made by prepare
	fan      *fan
	done     tally
	// loaded is how many messages prepare has stored, for progress.
	loaded atomic.Int64
	// observe, if set, is told of every delivery by any client; for tests.
	observe func(messageID string)
	// probes are the keys one receive reads, before and after prepare.
	probes [2]float64
}

// configure makes the topic and the queue. Their quotas are far away; all else
// is as users get it.
func (b *bed) configure(ctx context.Context) error {
	_, err := api.Call(ctx, b.doer, api.ResourcesConfigure, &api.ResourcesConfigureRequest{
		Name: topicName, Kind: api.KindTopic,
		Source: &api.SourcePolicy{MaxEvents: limits.SourceEvents, MaxBytes: limits.SourceBytes},
	})
	if err != nil {
		return err
	}
	_, err = api.Call(ctx, b.doer, api.ResourcesConfigure, &api.ResourcesConfigureRequest{
		Name: queueName, Kind: api.KindQueue,
		Queue: &api.QueuePolicy{
			MaxMessages: limits.QueueMessages, MaxBytes: limits.QueueBytes, MaxLeaseSeconds: limits.LeaseSeconds,
		},
	})
	return err
}

const (
	preloaders   = 8
	preloadBatch = 256
	preloadBytes = 4 << 20 // of one batch, half of what a request may have
)

// preload stores the backlog.
func preload(ctx context.Context, b *bed) error { return b.fill(ctx, b.backlog) }

// hold stores messages, claims the first and keeps it.
func hold(ctx context.Context, b *bed) error {
	if err := b.fill(ctx, 1+b.held); err != nil {
		return err
	}
	w := newReceiving(b, 1)
	w.receive.LeaseSeconds = limits.LeaseSeconds
	var r recorder
	_, err := w.take(ctx, &r, 1)
	b.done.add(r.tally)
	return err
}

// fill enqueues n messages.
func (b *bed) fill(ctx context.Context, n int) error {
	b.loaded.Store(0)
	batch := int64(min(preloadBatch, preloadBytes/len(b.payloads[0])))
	var left atomic.Int64
	left.Store(int64(n))
	var mu sync.Mutex
	return parallel(ctx, preloaders, func(ctx context.Context, i int) error {
		var r recorder
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			b.done.add(r.tally)
		}()
		for {
			rest := left.Add(-batch) + batch
			if rest <= 0 {
				return nil
			}
			e := newEnqueuing(b, i, int(min(rest, batch)))
			if err := e.send(ctx, &r); err != nil {
				return err
			}
			b.loaded.Add(int64(len(e.commit.Mutations)))
		}
	})
}

// parallel runs n functions at once. The first error ends the others' contexts
// and is returned.
func parallel(ctx context.Context, n int, fn func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := fn(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// probeReceives is how many receives one probe looks at.
const probeReceives = 32

// probe counts the keys read by one receive of one message.
func (b *bed) probe(ctx context.Context) (float64, error) {
	var r recorder
	defer func() { b.done.add(r.tally) }()
	w := newWorker(b, 0).(*worker)
	read := uint64(0)
	for range probeReceives {
		if err := w.enqueuing.send(ctx, &r); err != nil {
			return 0, err
		}
		before, err := b.sample()
		if err != nil {
			return 0, err
		}
		if _, err := w.take(ctx, &r, 1); err != nil {
			return 0, err
		}
		after, err := b.sample()
		if err != nil {
			return 0, err
		}
		read += after.Gets + after.Scanned - before.Gets - before.Scanned
		if err := w.ack(ctx, &r); err != nil {
			return 0, err
		}
	}
	return float64(read) / probeReceives, nil
}

// verify compares what the clients saw with what the store counted: nothing
// lost, nothing delivered twice.
func (b *bed) verify(ctx context.Context) error {
	page, err := api.Call(ctx, b.doer, api.EventsRead, &api.EventsReadRequest{Source: topic, Limit: 1})
	if err != nil {
		return err
	}
	status, err := api.Call(ctx, b.doer, api.QueuesStatus, &api.QueuesStatusRequest{Lane: lane})
	if err != nil {
		return err
	}
	var wrong []error
	same := func(what string, clients, store int64) {
		if clients != store {
			wrong = append(wrong, fmt.Errorf("%s: the clients count %d, the store %d", what, clients, store))
		}
	}
	same("events published", b.done.published, int64(page.Tail))
	same("messages enqueued", b.done.enqueued, status.Totals.Enqueued)
	same("messages delivered", b.done.received, status.Totals.Delivered)
	same("messages acknowledged", b.done.completed, status.Totals.Acked)
	same("messages that wait or are held", b.done.enqueued-b.done.completed, status.StoredMessages)
	same("messages held", b.done.received-b.done.completed, status.InFlightMessages)
	same("leases that ran out", 0, status.Totals.LeasesLost)
	return errors.Join(append(wrong, b.verifyGroups(ctx))...)
}
