package worker_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/worker"
)

func TestEffectsHappenOnceThoughEveryFirstAnswerIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(20)
		seen, of := map[string]int{}, map[string]string{}
		b.road.set(func(_ context.Context, _ *api.Operation, req any, ahead func() error) error {
			err := ahead()
			id := req.(api.CommandRequest).GetCommandID()
			b.road.mu.Lock()
			defer b.road.mu.Unlock()
			if p, ok := req.(*api.QueuesProcessRequest); ok {
				if of[p.Token] != "" && of[p.Token] != id {
					t.Error("a result was committed under two command ids")
				}
				of[p.Token] = id
			}
			if seen[id]++; err == nil && seen[id] == 1 {
				return lostAnswer()
			}
			return err
		})
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			if m.Attempt == 1 && m.MessageID == "m-7" {
				return worker.Retry(0, nil)
			}
			pass(11 * time.Second) // one renewal
			done(tx, m)
			tx.Add(api.Mutation{Publish: &api.Publish{Topic: "news", Events: []api.Event{client.Event("Worked", m.MessageID)}}})
			return nil
		}, worker.Options{Concurrency: 4})
		b.until("all are handled", b.emptied)
		b.road.set(nil)
		check(t, r.end())
		got := b.effects()
		slices.Sort(got)
		if len(got) != 20 || len(slices.Compact(got)) != 20 {
			t.Errorf("effects %v", got)
		}
		if s := b.status(); s.Totals.LeasesLost != 0 || s.Totals.Delivered != 21 || s.Totals.Nacked != 1 {
			t.Errorf("%+v", s.Totals)
		}
	})
}

func TestAResultWhoseOutcomeStaysUnknownIsNotGuessed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Second, 5)
		b.enqueue(2)
		// Whether the first commit of m-0 happens, nobody learns; that of m-1 does
		// not.
		b.road.set(func(ctx context.Context, o *api.Operation, req any, ahead func() error) error {
			if o != api.QueuesProcess.Operation {
				return ahead()
			}
			if req.(*api.QueuesProcessRequest).Effects[0].AppendEvents.Events[0].Type == "m-0" {
				_ = ahead()
			}
			return lostAnswer()
		})
		var told errorsOf
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			done(tx, m)
			return nil
		}, worker.Options{OnError: told.add})
		b.until("it gave up", func() bool { return len(told.all()) == 2 })
		b.road.set(nil)
		b.until("all are handled", b.emptied)
		check(t, r.end())
		if !told.has(&fault.Error{Code: fault.UnknownWriteOutcome}) {
			t.Errorf("told %v", told.all())
		}
		if got := b.effects(); len(got) != 2 || b.message("m-0").Attempts != 1 || b.message("m-1").LeaseLosses != 1 {
			t.Errorf("effects %v", got)
		}
	})
}

func TestAReceiveWhoseAnswerIsLostIsRepeatedAndGivesTheSameDeliveries(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(3)
		ids := map[string]bool{}
		b.road.set(func(_ context.Context, o *api.Operation, req any, ahead func() error) error {
			err := ahead()
			if q, ok := req.(*api.QueuesReceiveRequest); ok && b.road.count(o.Name) < 4 {
				ids[q.RequestID] = true
				return lostAnswer()
			}
			return err
		})
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			done(tx, m)
			return nil
		}, worker.Options{})
		b.until("all are handled", b.emptied)
		check(t, r.end())
		if s := b.status(); s.Totals.Delivered != 3 || s.Totals.LeasesLost != 0 || len(b.effects()) != 3 || len(ids) != 1 {
			t.Errorf("%+v, effects %v, %d ids", s.Totals, b.effects(), len(ids))
		}
	})
}

func TestAReceiveIsGivenUpWhenItsLeasesHaveEnded(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		inBubble(t, func(t *testing.T, b *bed) {
			// Each lease that nobody learns of counts as lost. In this time there are
			// seven of them at most, and they must not use up the attempts.
			b.retryEvery(time.Second, 100)
			b.enqueue(1)
			var healed atomic.Bool
			var released atomic.Int64
			b.road.set(func(_ context.Context, _ *api.Operation, req any, ahead func() error) error {
				released.Add(releases(req))
				switch {
				case healed.Load():
					return ahead()
				case arrives:
					_ = ahead()
				}
				return lostAnswer()
			})
			r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
				done(tx, m)
				return nil
			}, worker.Options{Lease: 10 * time.Second})
			pass(65 * time.Second)
			healed.Store(true)
			b.until("it is handled", b.emptied)
			check(t, r.end())
			if m := b.message("m-0"); m.State != api.StateAcked || len(b.effects()) != 1 {
				t.Errorf("%+v", m)
			}
			if n := released.Load(); n != 0 {
				t.Errorf("%d deliveries were given back", n)
			}
		})
	}
}

// releases is how many deliveries a request gives back.
func releases(req any) int64 {
	c, ok := req.(*api.QueuesCompleteRequest)
	if !ok {
		return 0
	}
	kept := slices.DeleteFunc(slices.Clone(c.Items), func(i api.CompleteItem) bool { return i.Action != api.ActionRelease })
	return int64(len(kept))
}

// What a repeated receive gives has leases that count from its first sending.
func TestAReceiveIsNotRepeatedForWhatCouldNotStart(t *testing.T) {
	const lease = 10 * time.Second
	for name, c := range map[string]struct {
		held     time.Duration // how long the first receive is on its way, in vain
		enqueued time.Duration
	}{
		"its leases end before it is sent again":      {lease - time.Millisecond, 0},
		"its leases end while the store waits for it": {lease * 8 / 10, lease + lease/20},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bed) {
				var first atomic.Bool
				var released atomic.Int64
				b.road.set(func(_ context.Context, _ *api.Operation, req any, ahead func() error) error {
					released.Add(releases(req))
					if first.Swap(true) {
						return ahead()
					}
					pass(c.held)
					return lostAnswer()
				})
				r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
					done(tx, m)
					return nil
				}, worker.Options{Lease: lease})
				pass(c.enqueued)
				b.enqueue(1)
				b.until("it is handled", b.emptied)
				check(t, r.end())
				if m, n := b.message("m-0"), released.Load(); n != 0 || m.Attempts != 1 {
					t.Errorf("%d deliveries were given back: %+v", n, m)
				}
			})
		})
	}
}

func TestACommitThatComesTooLateIsToldAndNothingElseIsDone(t *testing.T) {
	for _, plain := range []bool{false, true} {
		inBubble(t, func(t *testing.T, b *bed) {
			b.enqueue(1)
			var told errorsOf
			r := b.queue(func(_ context.Context, _ *worker.Tx, m *worker.Message) error {
				b.cancel(m.MessageID)
				return nil
			}, worker.Options{OnError: told.add, NoInbox: plain})
			b.until("it is told", func() bool { return len(told.all()) > 0 })
			check(t, r.end())
			if !told.has(worker.ErrLeaseLost) || !told.has(&fault.Error{Code: fault.StaleLease}) || len(told.all()) != 1 {
				t.Errorf("told %v", told.all())
			}
			if n := b.road.count("queues.complete") + b.road.count("queues.process"); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

func TestAPausedQueueIsWaitedForQuietly(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(1)
		b.policy(func(r *api.ResourcesConfigureRequest) { r.Paused = true })
		var told errorsOf
		var handled atomic.Int64
		r := b.queue(func(context.Context, *worker.Tx, *worker.Message) error { handled.Add(1); return nil }, worker.Options{OnError: told.add})
		pass(time.Hour)
		synctest.Wait()
		n := b.road.count("queues.receive")
		if n < 100 || n > 2000 || len(told.all()) != 0 || handled.Load() != 0 {
			t.Errorf("%d receives, %d handled, told %v", n, handled.Load(), told.all())
		}
		b.policy(func(r *api.ResourcesConfigureRequest) { r.Paused = false })
		b.until("it is handled", b.emptied)
		check(t, r.end())
	})
}

func TestAStoreThatIsAwayIsAskedEverMoreRarelyAndWorkGoesOnWhenItIsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(1)
		var told errorsOf
		b.road.set(down)
		r := b.queue(func(context.Context, *worker.Tx, *worker.Message) error { return nil }, worker.Options{OnError: told.add})
		pass(time.Hour)
		synctest.Wait()
		if n := b.road.count("queues.receive"); n < 3600/5 || n > 3600/2 || len(told.all()) != n {
			t.Errorf("%d receives in an hour, told %d", n, len(told.all()))
		}
		b.road.set(nil)
		began := time.Now()
		b.until("it is handled", b.emptied)
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("it took %s to notice", took)
		}
		check(t, r.end())
	})
}

func TestAnIdleWorkerWaitsInTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error { done(tx, m); return nil }, worker.Options{})
		pass(time.Hour)
		synctest.Wait()
		if n := b.road.count("queues.receive"); n < 355 || n > 365 { // a third of a lease each
			t.Errorf("%d receives in an hour", n)
		}
		began := time.Now()
		b.enqueue(1)
		synctest.Wait()
		if !b.emptied() || time.Since(began) != 0 {
			t.Errorf("a message was handled after %s", time.Since(began))
		}
		check(t, r.end())
	})
}

func TestWhatTheStoreWillNotDeliverEndsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		ctx := t.Context()
		nothing := func(context.Context, *worker.Tx, *worker.Message) error { return nil }
		_, err := b.db.ConfigurePrincipal(ctx, api.Principal{ID: "reader", PolicyEpoch: 1, Roles: []api.Role{api.RoleReader}})
		check(t, err)
		is(t, worker.Queue(b.db.As("default", "reader"), b.lane, nothing, worker.Options{}).Run(ctx), fault.PermissionDenied, "missing_capability")
		is(t, worker.Queue(b.db, client.Lane(b.lane.Partition, "other"), nothing, worker.Options{}).Run(ctx), fault.NotFound, "unknown_resource")
		is(t, worker.Queue(b.db, client.Lane(b.lane.Partition, "docs"), nothing, worker.Options{}).Run(ctx), fault.Validation, "wrong_kind")
		is(t, worker.Queue(b.db, b.lane, nothing, worker.Options{Lease: 301 * time.Second}).Run(ctx), fault.Validation, "")
	})
}

func TestAQueueThatIsDeletedEndsRunOnceItsHandlersHaveEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(1)
		ended := false
		began := time.Now()
		r := b.queue(func(ctx context.Context, _ *worker.Tx, _ *worker.Message) error {
			<-ctx.Done()
			is(t, context.Cause(ctx), fault.NotFound, "unknown_resource")
			ended = true
			return nil
		}, worker.Options{})
		synctest.Wait()
		_, err := b.db.DeleteResource(t.Context(), &api.ResourcesDeleteRequest{Name: "jobs", Purge: true})
		check(t, err)
		<-r.ended
		is(t, r.err, fault.NotFound, "unknown_resource")
		if !ended || time.Since(began) != 10*time.Second { // with the first renewal
			t.Errorf("Run ended after %s, its handler: %v", time.Since(began), ended)
		}
		r.stop()
	})
}

// Case 016: an acknowledgement waits behind an open long poll.
func TestAnOpenReceiveHoldsUpNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.enqueue(1)
		r := b.queue(func(_ context.Context, tx *worker.Tx, m *worker.Message) error {
			pass(12 * time.Second) // past a renewal, into an open receive
			done(tx, m)
			return nil
		}, worker.Options{})
		pass(12 * time.Second)
		synctest.Wait()
		if !b.emptied() || b.road.count("queues.complete") != 1 {
			t.Errorf("%+v after %d renewals", b.status().Counts, b.road.count("queues.complete"))
		}
		check(t, r.end())
	})
}
