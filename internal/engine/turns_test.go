package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
)

func TestPlacesEndAtTheirBoundAndOneTenantHasHalf(t *testing.T) {
	s := seats{places: places{max: 4}}
	for i, c := range []struct {
		tenant string
		want   bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", true}, {"c", false}} {
		if got := s.take(c.tenant); got != c.want {
			t.Errorf("place %d, for %s: %v", i, c.tenant, got)
		}
	}
	s.leave("a")
	if !s.take("c") || s.taken() != 4 {
		t.Errorf("a place that was left is not free: %d are taken", s.taken())
	}
	s.leave("a")
	s.leave("b")
	s.leave("b")
	s.leave("c")
	if s.taken() != 0 || len(s.tenants) != 0 {
		t.Errorf("%d places of %d tenants are left", s.taken(), len(s.tenants))
	}
}

func TestQueriesWaitInOrderForTheirTurnAndNoMoreThanMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := turns{running: places{max: 2}, waiting: places{max: 4}}
		took := make(chan string, 10)
		take := func(name, tenant string) {
			go func() {
				if err := q.take(t.Context(), tenant); err != nil {
					name += " " + reason(err)
				}
				took <- name
			}()
			synctest.Wait()
		}
		next := func(want string) {
			t.Helper()
			synctest.Wait()
			select {
			case got := <-took:
				if got != want {
					t.Errorf("%s, want %s", got, want)
				}
			default:
				t.Errorf("nobody, want %s", want)
			}
		}
		take("a1", "a")
		next("a1")
		take("a2", "a") // a has its half
		take("a3", "a")
		take("a4", "a")
		next("a4 admission_queries")
		take("b1", "b")
		next("b1")
		take("b2", "b")
		take("c1", "c")
		take("d1", "d")
		next("d1 admission_queries")
		if running, waiting := q.counts(); running != 2 || waiting != 4 {
			t.Errorf("%d run and %d wait", running, waiting)
		}
		q.done("b") // a came first, and has its half still
		next("b2")
		q.done("a")
		next("a2")
		q.done("b")
		next("c1")
		q.done("c")
		q.done("a")
		next("a3")
		q.done("a")
		if running, waiting := q.counts(); running != 0 || waiting != 0 || len(q.running.tenants)+len(q.waiting.tenants) != 0 {
			t.Errorf("%d run and %d wait", running, waiting)
		}
	})
}

func TestAQueryGivesUpItsPlaceInTheLineWhenItsCallerLeavesOrItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := turns{running: places{max: 1}, waiting: places{max: 4}}
		ok(t, q.take(t.Context(), "a"))
		left, leave := context.WithCancel(t.Context())
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ends := make(chan error, 2)
		go func() { ends <- q.take(left, "b") }()
		synctest.Wait()
		leave()
		if err := <-ends; fault.CodeOf(err) != fault.Cancelled {
			t.Errorf("who left: %v", err)
		}
		go func() { ends <- q.take(late, "c") }()
		if err := <-ends; reason(err) != "admission_queries" || fault.From(err).RetryAfterMillis == 0 {
			t.Errorf("whose time was up: %v", err)
		}
		q.done("a")
		if running, waiting := q.counts(); running != 0 || waiting != 0 || len(q.line) != 0 {
			t.Errorf("%d run and %d wait", running, waiting)
		}
	})
}

// Above the bound a receive still gets what is there; it may only not wait.
func TestNoMoreCallsAreParkedThanMayBe(t *testing.T) {
	parked(t, func(p *parking) {
		p.e.parked.max = 4 // of which the only tenant has half
		p.fromQueue(2, 1<<20)
		if l := LoadOf(p.e); l.Parked != 2 {
			t.Errorf("%d calls are parked", l.Parked)
		}
		receive := &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}, WaitMillis: 20_000}
		began := time.Now()
		_, err := api.Call(t.Context(), p, api.QueuesReceive, receive)
		if reason(err) != "admission_parked" || fault.From(err).RetryAfterMillis == 0 || time.Since(began) > 0 {
			t.Errorf("one above the bound: %v after %v", err, time.Since(began))
		}
		p.enqueue(3, 10)
		synctest.Wait()
		if l := LoadOf(p.e); l.Parked != 0 {
			t.Errorf("%d calls are parked after all got something", l.Parked)
		}
		p.fromQueue(2, 5) // one message is left, and too large for them
		receive.MaxBytes = 1 << 20
		if got := ask(p, api.QueuesReceive, receive); len(got.Deliveries) != 1 {
			t.Errorf("one above the bound got %d messages of those that are there", len(got.Deliveries))
		}
	})
}

// A command that no place is left for costs nothing: it is refused before it is
// encoded.
func TestWhenNothingIsAdmittedCommandsAreRefusedAtOnceAndUrgentOnesGoOn(t *testing.T) {
	parked(t, func(p *parking) {
		p.enqueue(1, 10)
		got := ask(p, api.QueuesReceive, &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}})
		for i := range limits.AdmittedCommands {
			ok(t, p.e.admission.enter(fmt.Sprint(i%2), 1, false))
		}
		big := &api.CommandsCommitRequest{Mutations: []api.Mutation{{Enqueue: &api.Enqueue{Queue: "jobs", Message: api.Message{Payload: make(api.JSON, limits.PayloadBytes)}}}}}
		for i := range big.Mutations[0].Enqueue.Message.Payload {
			big.Mutations[0].Enqueue.Message.Payload[i] = '1'
		}
		_, err := api.Call(t.Context(), p, api.CommandsCommit, big)
		if reason(err) != "admission_commands" || fault.From(err).RetryAfterMillis == 0 || fault.From(err).Retry != fault.RetrySameID {
			t.Errorf("refused with %v", err)
		}
		ask(p, api.QueuesComplete, &api.QueuesCompleteRequest{Lane: api.LaneRef{Queue: "jobs"}, Items: []api.CompleteItem{{Token: got.Deliveries[0].Token, Action: api.ActionAck}}})
		ask(p, api.ResourcesConfigure, &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue, ExpectedVersion: 1, Paused: true})
		for i := range limits.AdmittedCommands {
			p.e.admission.leave(fmt.Sprint(i%2), 1)
		}
		if l := LoadOf(p.e); l != (Load{}) {
			t.Errorf("the node holds %+v", l)
		}
	})
}
