package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/worker"
)

func TestALeaseIsRenewedForAsLongAsTheHandlerWorks(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(1)
		r := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			pass(5 * time.Minute)
			done(tx, m)
			return ctx.Err()
		}, worker.Options{Lease: 30 * time.Second})
		b.until("it is handled", b.emptied)
		check(t, r.end())
		if m := b.message("m-0"); m.Attempts != 1 || m.LeaseLosses != 0 || len(b.effects()) != 1 {
			t.Errorf("%+v, effects %v", m, b.effects())
		}
		// Five minutes are 30 thirds of a lease.
		if n := b.road.count("queues.complete"); n < 29 || n > 31 {
			t.Errorf("%d renewals", n)
		}
	})
}

// Case 064: a second message that waits in the client behind a slow first one
// expires there.
func TestAWorkerHoldsOnlyWhatItWorksOn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		const concurrency = 3
		b.enqueue(10)
		var now, most atomic.Int64
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			if held := b.status().InFlightMessages; held > concurrency {
				t.Errorf("%d are held by %d handlers", held, concurrency)
			}
			pass(2 * time.Second) // twice the lease
			done(tx, m)
			return nil
		}, worker.Options{Concurrency: concurrency, Lease: time.Second})
		b.until("all are handled", b.emptied)
		check(t, r.end())
		for i := range 10 {
			if m := b.message(fmt.Sprintf("m-%d", i)); m.Attempts != 1 || m.LeaseLosses != 0 {
				t.Errorf("%+v", m)
			}
		}
		if most.Load() != concurrency || len(b.effects()) != 10 {
			t.Errorf("%d at once, effects %v", most.Load(), b.effects())
		}
	})
}

// Case 082: a worker that lost its lease goes on beside the next one.
func TestAWorkerThatIsCutOffLosesItsLeaseAndItsResultIsNotCommitted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Second, 5)
		b.enqueue(1)
		began := time.Now()
		var cutOff errorsOf
		var lostAfter time.Duration
		first := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			b.road.set(down)
			<-ctx.Done()
			lostAfter = time.Since(began)
			if !errors.Is(context.Cause(ctx), worker.ErrLeaseLost) {
				t.Errorf("ended by %v", context.Cause(ctx))
			}
			b.road.set(nil)
			done(tx, m)
			tx.Put("docs", "by", map[string]string{"worker": "first"})
			return nil
		}, worker.Options{Concurrency: 1, Lease: 30 * time.Second, OnError: cutOff.add, DrainTimeout: time.Hour})
		synctest.Wait()
		first.stop() // it claims nothing more, and works on
		second := b.run(worker.Queue(b.db, b.lane, func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			done(tx, m)
			tx.Put("docs", "by", map[string]string{"worker": "second"})
			return nil
		}, worker.Options{}))
		b.until("it is handled", b.emptied)
		check(t, first.end())
		check(t, second.end())
		if m := b.message("m-0"); m.Attempts != 2 || m.LeaseLosses != 1 || len(b.effects()) != 1 {
			t.Errorf("%+v, effects %v", m, b.effects())
		}
		doc, err := b.db.Get(t.Context(), b.lane.Partition, "docs", "by")
		check(t, err)
		if !strings.Contains(string(doc.Document), "second") || !cutOff.has(worker.ErrLeaseLost) {
			t.Errorf("%s; told %v", doc.Document, cutOff.all())
		}
		if lostAfter > 30*time.Second {
			t.Errorf("the handler learned it after %s", lostAfter)
		}
	})
}

func TestARefusedRenewalEndsTheHandlerAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(1)
		began := time.Now()
		var told errorsOf
		var after time.Duration
		r := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			b.cancel("m-0")
			<-ctx.Done()
			after = time.Since(began)
			is(t, context.Cause(ctx), fault.StaleLease, "")
			done(tx, m)
			return nil
		}, worker.Options{Lease: 30 * time.Second, OnError: told.add})
		b.until("the handler has ended", func() bool { return len(told.all()) > 0 })
		check(t, r.end())
		if !told.has(worker.ErrLeaseLost) || len(b.effects()) != 0 || b.road.count("queues.process") != 0 {
			t.Errorf("told %v, effects %v", told.all(), b.effects())
		}
		if after != 10*time.Second {
			t.Errorf("it learned it after %s, the first renewal is after 10s", after)
		}
	})
}

func TestALeaseCountsFromTheSendingOfItsRenewalAndNotFromTheAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(1)
		b.road.set(func(ctx context.Context, o *api.Operation, req any, ahead func() error) error {
			err := ahead()
			if o == api.QueuesComplete.Operation {
				b.road.set(down)
				pass(15 * time.Second)
			}
			return err
		})
		began := time.Now()
		var after time.Duration
		r := b.queue(func(ctx context.Context, _ *worker.Tx, _ *worker.Message) error {
			<-ctx.Done()
			after = time.Since(began)
			return nil
		}, worker.Options{Lease: 30 * time.Second, DrainTimeout: time.Hour})
		pass(time.Second)
		check(t, r.end())
		if after != 40*time.Second { // renewed after ten
			t.Errorf("lost after %s", after)
		}
	})
}

// Case 107: the deadline of a delivery is in the past when it arrives.
func TestADeliveryWhoseLeaseHasEndedOnArrivalIsNotHandled(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Second, 5)
		b.enqueue(1)
		var late atomic.Bool
		b.road.set(func(_ context.Context, o *api.Operation, _ any, ahead func() error) error {
			err := ahead()
			if o == api.QueuesReceive.Operation && !late.Swap(true) {
				pass(3100 * time.Millisecond)
			}
			return err
		})
		r := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			if m.Attempt != 2 {
				t.Errorf("attempt %d was handled", m.Attempt)
			}
			done(tx, m)
			return nil
		}, worker.Options{Lease: 3 * time.Second})
		b.until("it is handled", b.emptied)
		check(t, r.end())
		if m := b.message("m-0"); m.Attempts != 2 || m.LeaseLosses != 1 || m.Failures != 0 || len(b.effects()) != 1 {
			t.Errorf("%+v, effects %v", m, b.effects())
		}
	})
}

// Case 062: many workers, long work, and answers to renewals that are lost.
func TestInAStormOfRenewalsWithLostAnswersEveryMessageTakesEffectOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		const messages, lease = 150, 3 * time.Second
		b.enqueue(messages)
		random := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		chance := func(percent int) bool { mu.Lock(); defer mu.Unlock(); return random.IntN(100) < percent }
		var lost atomic.Int64
		b.road.set(func(ctx context.Context, o *api.Operation, req any, ahead func() error) error {
			pass(time.Duration(1+len(o.Name)) * time.Millisecond)
			err := ahead()
			switch {
			case err == nil && chance(5):
				lost.Add(1)
				return lostAnswer()
			case err == nil && chance(2): // or nobody says so
				lost.Add(1)
				<-ctx.Done()
				return lostAnswer()
			}
			return err
		})
		var runs []*running
		for range messages {
			runs = append(runs, b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
				select {
				case <-time.After(10 * lease):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				done(tx, m)
				return nil
			}, worker.Options{Concurrency: 1, Lease: lease}))
		}
		b.until("all are handled", b.emptied)
		b.road.set(nil)
		for _, r := range runs {
			check(t, r.end())
		}
		got := b.effects()
		slices.Sort(got)
		if n := len(slices.Compact(got)); n != messages || len(b.effects()) != messages {
			t.Errorf("%d effects of %d messages", len(b.effects()), n)
		}
		s := b.status()
		if s.Totals.LeasesLost != 0 || s.Totals.Delivered != messages {
			t.Errorf("%+v", s.Totals)
		}
		if lost.Load() < 100 {
			t.Errorf("%d answers lost", lost.Load())
		}
	})
}

func TestALeaseThatMayNotGrowOlderIsHeldUntilItEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.policy(func(r *api.ResourcesConfigureRequest) {
			r.Queue.MaxLeaseSeconds, r.Queue.MaxLeaseAgeSeconds = 30, 60
			r.Queue.Retry = api.RetryPolicy{BaseMillis: 1000, MaxMillis: 1000, Factor: 1, Jitter: api.JitterNone}
		})
		b.enqueue(1)
		var at []time.Duration
		began := time.Now()
		r := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			if m.Attempt == 2 {
				return nil
			}
			<-ctx.Done()
			at = append(at, time.Since(began))
			return nil
		}, worker.Options{Lease: 30 * time.Second})
		b.until("it is handled", b.emptied)
		check(t, r.end())
		if len(at) != 1 || at[0] != 60*time.Second {
			t.Errorf("lost after %v, the policy allows 60s", at)
		}
	})
}

func TestAHandlerThatTakesTooLongIsToldAndItsTextSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Second, 3)
		b.enqueue(2)
		stuck := make(chan struct{})
		r := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			switch {
			case m.Attempt > 1:
				return nil
			case m.MessageID == "m-0":
				<-ctx.Done()
				if context.Cause(ctx) != worker.ErrTimeout {
					t.Errorf("ended by %v", context.Cause(ctx))
				}
				return ctx.Err()
			}
			<-stuck // minds nothing; another one gets the message nevertheless
			done(tx, m)
			return nil
		}, worker.Options{HandlerTimeout: 70 * time.Second, Lease: 30 * time.Second})
		b.until("both are handled", b.emptied)
		m := b.message("m-0")
		if !strings.Contains(m.LastFailure, "1m10s") || m.Failures != 1 || m.LeaseLosses != 0 {
			t.Errorf("%+v", m)
		}
		if m := b.message("m-1"); m.LeaseLosses != 1 || m.Attempts != 2 {
			t.Errorf("%+v", m)
		}
		close(stuck)
		check(t, r.end())
		if len(b.effects()) != 0 {
			t.Errorf("effects %v", b.effects())
		}
	})
}
