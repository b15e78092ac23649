package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/worker"
)

// group makes a group of the topic news.
func (b *bed) group(name string, p api.GroupPolicy) api.GroupRef {
	b.t.Helper()
	g := client.Group(client.Topic(b.lane.Partition, "news"), name)
	_, err := api.Call(b.t.Context(), b.db, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{
		Group: g, Definition: api.GroupDefinition{Policy: p},
	})
	check(b.t, err)
	return g
}

// publish adds n events to the topic news, whose payload is their number from 1.
func (b *bed) publish(n int) {
	b.t.Helper()
	for i := range n {
		_, err := b.db.Commit(b.t.Context(), b.lane.Partition, client.Publish("news", client.Event("Counted", i+1)))
		check(b.t, err)
	}
}

func (b *bed) groupStatus(g api.GroupRef) *api.SubscriptionsStatusResponse {
	b.t.Helper()
	s, err := api.Call(b.t.Context(), b.db, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: g})
	check(b.t, err)
	return s
}

func (b *bed) reached(g api.GroupRef, checkpoint uint64) func() bool {
	return func() bool { return b.groupStatus(g).State.Checkpoint == checkpoint }
}

// seek moves a group to its beginning and lets it deliver again.
func (b *bed) seek(g api.GroupRef) {
	b.t.Helper()
	r, err := api.Call(b.t.Context(), b.db, api.SubscriptionsSeek, &api.SubscriptionsSeekRequest{
		Group: g, To: api.SeekBeginning, ExpectedGeneration: b.groupStatus(g).State.Generation,
	})
	check(b.t, err)
	_, err = api.Call(b.t.Context(), b.db, api.SubscriptionsResume, &api.SubscriptionsResumeRequest{Group: g, ExpectedGeneration: r.State.Generation})
	check(b.t, err)
}

type onEvent = func(context.Context, *worker.Tx, *worker.Event) error

// members runs a worker of a group over the troubled road.
func (b *bed) members(g api.GroupRef, h onEvent, o worker.Options) *running {
	return b.run(worker.Group(b.road, g, h, o))
}

// doneEvent leaves one event named after the position.
func doneEvent(tx *worker.Tx, e *worker.Event) {
	tx.Append("done", "all", client.Event(fmt.Sprintf("%s-%d", e.Group.Group, e.Position), nil))
}

func TestEffectsInboxAndAcknowledgementOfAGroupsHandlerCommitTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		g, other := b.group("mail", api.GroupPolicy{}), b.group("audit", api.GroupPolicy{})
		b.publish(20)
		h := func(_ context.Context, tx *worker.Tx, e *worker.Event) error {
			var n uint64
			if err := e.Decode(&n); err != nil || n != e.Position || e.Type != "Counted" || e.Attempt != 1 || e.Redriven {
				t.Errorf("got %+v (%v)", e, err)
			}
			pass(time.Minute) // past some renewals
			doneEvent(tx, e)
			tx.Put("docs", e.EventID, map[string]uint64{"n": n})
			return nil
		}
		first, second := b.members(g, h, worker.Options{Concurrency: 7}), b.members(other, h, worker.Options{Concurrency: 3})
		b.until("all are handled", func() bool { return b.reached(g, 20)() && b.reached(other, 20)() })
		check(t, first.end())
		check(t, second.end())
		got := b.effects()
		slices.Sort(got)
		if len(got) != 40 || len(slices.Compact(got)) != 40 {
			t.Errorf("effects %v", got)
		}
		if s := b.groupStatus(g); s.Totals.LeasesLost != 0 || s.Totals.Delivered != 20 || s.Counts.Leased != 0 {
			t.Errorf("%+v", s.Totals)
		}
	})
}

func TestAGroupsHandlerFailsRetriesAndRefusesLikeAQueues(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		g := b.group("mail", api.GroupPolicy{Retry: api.RetryPolicy{BaseMillis: 5000, MaxMillis: 5000, Factor: 1, Jitter: api.JitterNone}})
		b.publish(4)
		at := map[uint64][]time.Time{}
		r := b.members(g, func(_ context.Context, tx *worker.Tx, e *worker.Event) error {
			at[e.Position] = append(at[e.Position], time.Now())
			doneEvent(tx, e)
			switch {
			case e.Position == 1:
				return worker.Terminal(errors.New("no such order"))
			case e.Attempt > 1:
				return nil
			case e.Position == 2:
				return worker.Retry(time.Minute, nil)
			case e.Position == 3:
				panic("out of range")
			}
			tx.PutAt("docs", "a", 9, map[string]int{})
			return nil
		}, worker.Options{Concurrency: 1, NoInbox: true})
		b.until("all are handled", b.reached(g, 4))
		check(t, r.end())
		for position, want := range map[uint64]time.Duration{2: time.Minute, 3: 5 * time.Second, 4: 5 * time.Second} {
			if x := at[position]; len(x) != 2 || x[1].Sub(x[0]) != want {
				t.Errorf("position %d was tried at %v", position, x)
			}
		}
		dead, err := api.Call(t.Context(), b.db, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: g})
		check(t, err)
		if len(dead.DeadLetters) != 1 || dead.DeadLetters[0].LastFailure != "no such order" || len(b.effects()) != 3 {
			t.Errorf("%+v, effects %v", dead.DeadLetters, b.effects())
		}
	})
}

func TestAWorkerOfOneGenerationGetsNothingOfAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		g := b.group("mail", api.GroupPolicy{})
		b.publish(3)
		r := b.members(g, func(_ context.Context, tx *worker.Tx, e *worker.Event) error {
			doneEvent(tx, e)
			return nil
		}, worker.Options{ExpectedGeneration: b.groupStatus(g).State.Generation})
		b.until("all are handled", b.reached(g, 3))
		b.seek(g)
		<-r.ended
		is(t, r.err, fault.RevisionConflict, "group_generation")
		if s := b.groupStatus(g); s.Totals.Delivered != 3 || len(b.effects()) != 3 {
			t.Errorf("%+v", s.Totals)
		}
		r.stop()
	})
}

func TestASeekEndsTheHandlersOfBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		g := b.group("mail", api.GroupPolicy{})
		b.publish(2)
		var mu sync.Mutex
		first := true
		r := b.members(g, func(ctx context.Context, tx *worker.Tx, e *worker.Event) error {
			mu.Lock()
			again := !first
			first = false
			mu.Unlock()
			if !again {
				b.seek(g)
				<-ctx.Done()
				is(t, context.Cause(ctx), fault.TokenInvalidated, "generation_changed")
				tx.Put("docs", "before", map[string]int{})
			}
			doneEvent(tx, e)
			return nil
		}, worker.Options{Concurrency: 1})
		b.until("all are handled", b.reached(g, 2))
		check(t, r.end())
		_, err := b.db.Get(t.Context(), b.lane.Partition, "docs", "before")
		is(t, err, fault.NotFound, "")
		if got := b.effects(); len(got) != 2 {
			t.Errorf("effects %v", got)
		}
	})
}

// Case 111: a standby starts from a stale position when it takes over.
func TestAWorkerThatTakesOverGoesOnWhereTheGroupStands(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		g := b.group("mail", api.GroupPolicy{Retry: api.RetryPolicy{BaseMillis: 1, MaxMillis: 1, Factor: 1, Jitter: api.JitterNone}})
		b.publish(5)
		h := func(name string) onEvent {
			return func(_ context.Context, tx *worker.Tx, e *worker.Event) error {
				tx.Append("done", "all", client.Event(fmt.Sprintf("%s-%d", name, e.Position), nil))
				return nil
			}
		}
		same := worker.Options{SessionID: "mailer", Concurrency: 1}
		first := b.members(g, h("a"), same)
		b.until("five are handled", b.reached(g, 5))
		standby := b.run(worker.Group(b.db, g, h("b"), same))
		synctest.Wait()
		b.road.set(down)
		check(t, first.end()) // as if it died
		b.publish(3)
		b.until("the rest is handled", b.reached(g, 8))
		check(t, standby.end())
		if got := strings.Join(b.effects(), " "); got != "a-1 a-2 a-3 a-4 a-5 b-6 b-7 b-8" {
			t.Errorf("effects %s", got)
		}
	})
}

// Case 111, its second half.
func TestAGroupMakesProgressThroughAnyRestartsOfItsWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		const workers, lease = 5, 3 * time.Second
		g := b.group("mail", api.GroupPolicy{MaxAttempts: 1000, Retry: api.RetryPolicy{BaseMillis: 1, MaxMillis: 1, Factor: 1, Jitter: api.JitterNone}})
		random := rand.New(rand.NewPCG(7, 7))
		h := func(ctx context.Context, tx *worker.Tx, e *worker.Event) error {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			doneEvent(tx, e)
			return nil
		}
		// Each worker has a road of its own, which ends where its process died.
		type process struct {
			*running
			road *road
		}
		start := func() process {
			own := &road{to: b.db}
			return process{b.run(worker.Group(own, g, h, worker.Options{SessionID: "mailer", Concurrency: 2, Lease: lease, DrainTimeout: -1})), own}
		}
		all := make([]process, workers)
		for i := range all {
			all[i] = start()
		}
		var dying []process
		total := uint64(0)
		for range 20 {
			b.publish(10)
			total += 10
			for _, i := range random.Perm(workers) {
				all[i].road.set(down)
				all[i].stop()
				dying = append(dying, all[i])
				all[i] = start()
				pass(time.Duration(random.IntN(200)) * time.Millisecond)
			}
			before := time.Now()
			b.until("the group has caught up", b.reached(g, total))
			if took := time.Since(before); took > 2*lease {
				t.Fatalf("it took %s", took)
			}
		}
		for _, p := range append(dying, all...) {
			check(t, p.end())
		}
		got := b.effects()
		slices.Sort(got)
		if len(got) != int(total) || len(slices.Compact(got)) != int(total) {
			t.Errorf("%d effects of %d events", len(got), total)
		}
	})
}

// Case 021: a worker behind a blocked position keeps fetching.
func TestAWorkerBehindABlockedPositionHoldsNoMoreThanTheWindow(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		g := b.group("mail", api.GroupPolicy{MaxWindow: 8})
		free := make(chan struct{})
		r := b.members(g, func(_ context.Context, tx *worker.Tx, e *worker.Event) error {
			if e.Position == 1 {
				<-free
			}
			doneEvent(tx, e)
			return nil
		}, worker.Options{Concurrency: 100})
		for range 10 {
			b.publish(30)
			pass(time.Minute)
		}
		synctest.Wait()
		s := b.groupStatus(g)
		if s.State.Checkpoint != 0 || s.Totals.Delivered != 8 || s.Counts.Leased != 1 || len(b.effects()) != 7 {
			t.Errorf("%+v %+v, effects %v", s.State, s.Totals, b.effects())
		}
		if n := b.road.count("subscriptions.receive"); n > 100 {
			t.Errorf("%d receives in ten minutes", n)
		}
		close(free)
		b.until("all are handled", b.reached(g, 300))
		check(t, r.end())
	})
}

func TestAPausedGroupIsWaitedForAndADeletedOneEndsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		g := b.group("mail", api.GroupPolicy{})
		_, err := api.Call(t.Context(), b.db, api.SubscriptionsPause, &api.SubscriptionsPauseRequest{Group: g, ExpectedGeneration: b.groupStatus(g).State.Generation})
		check(t, err)
		b.publish(1)
		var told errorsOf
		r := b.members(g, func(_ context.Context, tx *worker.Tx, e *worker.Event) error {
			doneEvent(tx, e)
			return nil
		}, worker.Options{OnError: told.add})
		pass(time.Hour)
		synctest.Wait()
		if len(told.all()) != 0 || b.groupStatus(g).Totals.Delivered != 0 {
			t.Errorf("told %v", told.all())
		}
		_, err = api.Call(t.Context(), b.db, api.SubscriptionsResume, &api.SubscriptionsResumeRequest{Group: g, ExpectedGeneration: b.groupStatus(g).State.Generation})
		check(t, err)
		b.until("it is handled", b.reached(g, 1))
		_, err = api.Call(t.Context(), b.db, api.SubscriptionsDelete, &api.SubscriptionsDeleteRequest{Group: g, Confirm: new(uint64(1))})
		check(t, err)
		<-r.ended
		is(t, r.err, fault.NotFound, "unknown_group")
		r.stop()
	})
}
