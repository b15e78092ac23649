package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/worker"
)

func TestRunFinishesWhatItHoldsAndClaimsNothingMoreWhenItsContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(5)
		r := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			pass(2 * time.Minute) // several leases
			done(tx, m)
			return ctx.Err()
		}, worker.Options{Concurrency: 2, DrainTimeout: 3 * time.Minute})
		synctest.Wait()
		began := time.Now()
		check(t, r.end())
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("it drained for %s", took)
		}
		s := b.status()
		if s.Counts.Acked != 2 || s.Counts.Ready != 3 || s.Totals.Delivered != 2 || len(b.effects()) != 2 {
			t.Errorf("%+v %+v, effects %v", s.Counts, s.Totals, b.effects())
		}
	})
}

func TestHandlersThatOutlastTheDrainAreToldAndTheirDeliveriesGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Minute, 5)
		b.enqueue(5)
		r := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			<-ctx.Done()
			if context.Cause(ctx) != worker.ErrDraining {
				t.Errorf("ended by %v", context.Cause(ctx))
			}
			switch m.MessageID {
			case "m-0":
				return ctx.Err()
			case "m-1": // it finishes nevertheless
				done(tx, m)
				return nil
			case "m-2": // it knows better
				return worker.Terminal(errors.New("no such order"))
			case "m-4": // it finishes, and the store will not have it
				tx.PutAt("docs", "a", 9, map[string]int{})
				return nil
			}
			panic("shut down twice")
		}, worker.Options{DrainTimeout: 45 * time.Second})
		synctest.Wait()
		began := time.Now()
		check(t, r.end())
		if took := time.Since(began); took != 45*time.Second {
			t.Errorf("it drained for %s", took)
		}
		for id, want := range map[string]struct {
			state    api.MessageState
			attempts int64
		}{"m-0": {api.StateReady, 0}, "m-1": {api.StateAcked, 1}, "m-2": {api.StateDeadLettered, 1}, "m-3": {api.StateScheduled, 1}, "m-4": {api.StateScheduled, 1}} {
			if m := b.message(id); m.State != want.state || m.Attempts != want.attempts {
				t.Errorf("%s: %+v", id, m)
			}
		}
	})
}

func TestANegativeDrainTimeoutDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(1)
		r := b.queue(func(ctx context.Context, _ *worker.Tx, _ *worker.Message) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, worker.Options{DrainTimeout: -1})
		synctest.Wait()
		began := time.Now()
		check(t, r.end())
		if m := b.message("m-0"); time.Since(began) != 0 || m.State != api.StateReady || m.Attempts != 0 {
			t.Errorf("after %s: %+v", time.Since(began), m)
		}
	})
}

func TestADrainEndsThoughTheStoreIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(2)
		r := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			b.road.set(down)
			if m.MessageID == "m-0" {
				done(tx, m)
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}, worker.Options{DrainTimeout: 10 * time.Second, Lease: 5 * time.Minute})
		synctest.Wait()
		began := time.Now()
		check(t, r.end())
		if took := time.Since(began); took != 15*time.Second {
			t.Errorf("it drained for %s, 10s and 5s for the last calls were expected", took)
		}
	})
}

func TestAClaimThatRunWasCutOffFromIsGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(3)
		var r *running
		cut := false
		b.road.set(func(ctx context.Context, o *api.Operation, _ any, ahead func() error) error {
			err := ahead()
			if o == api.QueuesReceive.Operation && !cut {
				cut = true
				r.stop()
				<-ctx.Done()
				return lostAnswer()
			}
			return err
		})
		handle := func(context.Context, *worker.Tx, *worker.Message) error {
			t.Error("handled")
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		r = &running{stop: stop}
		check(t, worker.Queue(b.road, b.lane, handle, worker.Options{Concurrency: 3}).Run(ctx))
		if s := b.status(); s.Counts.Ready != 3 || s.Counts.Leased != 0 || s.Totals.Delivered != 3 {
			t.Errorf("%+v %+v", s.Counts, s.Totals)
		}
		if m := b.message("m-0"); m.Attempts != 0 {
			t.Errorf("%+v", m)
		}
	})
}

func TestARunWhoseContextHasEndedClaimsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(1)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		check(t, worker.Queue(b.road, b.lane, func(context.Context, *worker.Tx, *worker.Message) error { return nil }, worker.Options{}).Run(ctx))
		if n := b.road.count("queues.receive"); n != 0 {
			t.Errorf("%d receives", n)
		}
	})
}

// Case 091: a process that drains takes work back under the name of its
// successor.
func TestWorkersOfOneNameAreApart(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Second, 5)
		b.enqueue(1)
		same := worker.Options{SessionID: "local", Lease: 5 * time.Second, DrainTimeout: time.Hour}
		old := b.queue(func(ctx context.Context, tx *worker.Tx, m *worker.Message) error {
			if m.MessageID != "m-0" {
				t.Errorf("the old worker got %s", m.MessageID)
			}
			b.road.set(down) // its leases run out
			<-ctx.Done()
			done(tx, m)
			return nil
		}, same)
		synctest.Wait()
		if got := b.message("m-0").SessionID; got != "local" {
			t.Errorf("held by session %q", got)
		}
		old.stop() // it drains
		next := b.run(worker.Queue(b.db, b.lane, func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			done(tx, m)
			return nil
		}, same))
		for i := range 3 {
			m := client.Message(i)
			m.MessageID = fmt.Sprintf("later-%d", i)
			_, err := b.db.Commit(t.Context(), b.lane.Partition, client.Enqueue("jobs", m))
			check(t, err)
		}
		b.until("all are handled", b.emptied)
		b.road.set(nil)
		check(t, old.end())
		check(t, next.end())
		if m := b.message("m-0"); m.Attempts != 2 || m.LeaseLosses != 1 || len(b.effects()) != 4 {
			t.Errorf("%+v, effects %v", m, b.effects())
		}
	})
}
