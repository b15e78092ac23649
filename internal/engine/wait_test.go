package engine

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
)

// parking is a store with the queue jobs and the topic news, and calls that wait
// at it. Nothing ticks. The clock of its bubble moves only when there is nothing
// to do, so what took no time did not come from the recheck.
type parking struct {
	t     *testing.T
	e     *Engine
	as    *Caller
	idle  context.Context // of the parked calls
	ends  chan ended      // of the parked calls
	began time.Time
}

// ended is how a parked call ended.
type ended struct {
	who string
	got int
	err error
}

func parked(t *testing.T, test func(p *parking)) {
	t.Helper()
	began := time.Now().Round(0)
	synctest.Test(t, func(t *testing.T) {
		//keyload:sleep the fake clock of this bubble moves on to now: command ids grow with time
		time.Sleep(time.Until(began))
		store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
		ok(t, err)
		e, err := Open(Config{Store: store, Shards: 1, Durability: api.DurableProcess})
		ok(t, err)
		idle, leave := context.WithCancel(t.Context())
		p := &parking{t: t, e: e, as: e.Root(), idle: idle, ends: make(chan ended, 100)}
		for name, kind := range map[string]api.ResourceKind{"jobs": api.KindQueue, "news": api.KindTopic} {
			ask(p, api.ResourcesConfigure, &api.ResourcesConfigureRequest{Name: name, Kind: kind})
		}
		test(p)
		leave()
		synctest.Wait()
		ok(t, e.Close())
		ok(t, store.Close())
	})
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Do implements api.Doer.
func (p *parking) Do(ctx context.Context, o *api.Operation, req, resp any) error {
	got, err := p.e.Do(ctx, p.as, o, req)
	if err == nil {
		reflect.ValueOf(resp).Elem().Set(reflect.ValueOf(got).Elem())
	}
	return err
}

func ask[Req, Resp any](p *parking, o api.Op[Req, Resp], req *Req) *Resp {
	p.t.Helper()
	resp, err := api.Call(p.t.Context(), p, o, req)
	ok(p.t, err)
	return resp
}

func (p *parking) commit(ms ...api.Mutation) {
	p.t.Helper()
	ask(p, api.CommandsCommit, &api.CommandsCommitRequest{Mutations: ms})
}

func group(name string) api.GroupRef {
	return api.GroupRef{Source: api.SourceRef{Resource: "news"}, Group: name}
}

func (p *parking) configure(name string) {
	p.t.Helper()
	ask(p, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{Group: group(name)})
}

// publish stores n events of so many bytes in one command, enqueue n messages.
func (p *parking) publish(n, bytes int) {
	p.t.Helper()
	events := make([]api.Event, n)
	for i := range events {
		events[i] = api.Event{Type: "e", Payload: api.Of(strings.Repeat("x", bytes-2))}
	}
	p.commit(api.Mutation{Publish: &api.Publish{Topic: "news", Events: events}})
}

func (p *parking) enqueue(n, bytes int) {
	p.t.Helper()
	ms := make([]api.Mutation, n)
	for i := range ms {
		ms[i].Enqueue = &api.Enqueue{Queue: "jobs", Message: api.Message{Payload: api.Of(strings.Repeat("x", bytes-2))}}
	}
	p.commit(ms...)
}

// park parks n calls by one name, one after the other.
func (p *parking) park(who string, n int, get func(as *parking) (int, error)) {
	as := *p
	for range n {
		go func() {
			got, err := get(&as)
			p.ends <- ended{who, got, err}
		}()
		synctest.Wait()
	}
	p.began = time.Now()
}

// fromGroup and fromQueue park calls that wait for one delivery of at most so
// many bytes, readers such as wait for a page of the topic.
func (p *parking) fromGroup(name string, n int, bytes int64) {
	p.park(fmt.Sprint(name, bytes), n, func(as *parking) (int, error) {
		r, err := api.Call(as.idle, as, api.SubscriptionsReceive, &api.SubscriptionsReceiveRequest{Group: group(name), MaxBytes: bytes, WaitMillis: 20_000})
		if err != nil {
			return 0, err
		}
		return len(r.Deliveries), nil
	})
}

func (p *parking) fromQueue(n int, bytes int64) {
	p.park(fmt.Sprint("jobs", bytes), n, func(as *parking) (int, error) {
		r, err := api.Call(as.idle, as, api.QueuesReceive, &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}, MaxBytes: bytes, WaitMillis: 20_000})
		if err != nil {
			return 0, err
		}
		return len(r.Deliveries), nil
	})
}

func (p *parking) readers(n int) {
	p.park("reader", n, func(as *parking) (int, error) {
		r, err := api.Call(as.idle, as, api.EventsRead, &api.EventsReadRequest{Source: api.SourceRef{Resource: "news"}, WaitMillis: 20_000})
		if err != nil {
			return 0, err
		}
		return len(r.Events), nil
	})
}

// settled is how many calls of each kind have got a delivery by now, and how many
// have failed with which reason; nobody else has ended.
func (p *parking) settled() map[string]int {
	p.t.Helper()
	synctest.Wait()
	got := map[string]int{}
	for len(p.ends) > 0 {
		e := <-p.ends
		switch {
		case e.err != nil:
			got[e.who+" "+reason(e.err)]++
		default:
			got[e.who] += e.got
		}
	}
	if d := time.Since(p.began); d != 0 {
		p.t.Errorf("the clock moved by %s", d)
	}
	return got
}

func (p *parking) want(what string, want map[string]int) {
	p.t.Helper()
	if got := p.settled(); !reflect.DeepEqual(got, want) {
		p.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// commands is how many commands the log takes while do is done.
func (p *parking) commands(do func()) int {
	before := p.e.Stats().Commands
	do()
	synctest.Wait()
	return int(p.e.Stats().Commands - before)
}

func TestACallThatFailsHandsItsWakeUpOn(t *testing.T) {
	parked(t, func(p *parking) {
		p.configure("g")
		p.fromGroup("g", 1, 10)
		p.fromGroup("g", 1, 1_000)
		p.publish(1, 100)
		p.want("an event that the first of a group is too small for", map[string]int{"g10 message_too_large": 1, "g1000": 1})

		p.fromQueue(1, 10)
		p.fromQueue(1, 11)
		p.fromQueue(1, 1_000)
		p.enqueue(1, 100)
		p.want("a message that the first two are too small for", map[string]int{"jobs10 message_too_large": 1, "jobs11 message_too_large": 1, "jobs1000": 1})
	})
}

func TestACallWhoseRightsAreGoneHandsItsWakeUpOn(t *testing.T) {
	parked(t, func(p *parking) {
		p.configure("g")
		policy := api.Principal{ID: "w", PolicyEpoch: 1, Roles: []api.Role{api.RoleWorker}}
		ask(p, api.PrincipalsConfigure, &api.PrincipalsConfigureRequest{Principal: policy})
		root := p.as
		p.as = p.e.As("default", "w")
		p.fromGroup("g", 1, 1_000)
		p.as = root
		p.fromGroup("g", 1, 1_001)
		policy.Revoked, policy.PolicyEpoch = true, 2
		ask(p, api.PrincipalsConfigure, &api.PrincipalsConfigureRequest{Principal: policy})
		p.publish(1, 100)
		got := p.settled()
		if got["g1001"] != 1 || len(got) != 2 {
			t.Errorf("ended: %v", got)
		}
	})
}

func TestOneEventWakesOneReceiveOfAGroup(t *testing.T) {
	parked(t, func(p *parking) {
		p.configure("g")
		p.fromGroup("g", 50, 1_000)
		p.fromQueue(50, 1_000)
		for range 20 {
			if n := p.commands(func() { p.publish(1, 100) }); n > 3 {
				t.Errorf("publishing and delivering one event took %d commands", n)
			}
			p.want("one event", map[string]int{"g1000": 1})
			if n := p.commands(func() { p.enqueue(1, 100) }); n > 3 {
				t.Errorf("enqueuing and delivering one message took %d commands", n)
			}
			p.want("one message", map[string]int{"jobs1000": 1})
		}
	})
}

func TestEveryGroupAndEveryReaderIsWokenForWhatIsPublished(t *testing.T) {
	parked(t, func(p *parking) {
		for _, g := range []string{"a", "b", "c"} {
			p.configure(g)
			p.fromGroup(g, 3, 1_000)
		}
		p.readers(3)
		if n := p.commands(func() { p.publish(2, 100) }); n > 10 {
			t.Errorf("publishing two events and delivering them to three groups took %d commands", n)
		}
		p.want("two events", map[string]int{"a1000": 2, "b1000": 2, "c1000": 2, "reader": 6})
	})
}

func TestAReceiveThatLeavesSomethingBehindWakesTheNext(t *testing.T) {
	parked(t, func(p *parking) {
		ask(p, api.ResourcesConfigure, &api.ResourcesConfigureRequest{
			Name: "jobs", Kind: api.KindQueue, ExpectedVersion: 1, Queue: &api.QueuePolicy{MaxInFlightBytes: 20_000},
		})
		p.enqueue(1, 30_000)
		big := ask(p, api.QueuesReceive, &api.QueuesReceiveRequest{Lane: api.LaneRef{Queue: "jobs"}})
		p.enqueue(4, 1_000)
		p.fromQueue(3, 5_000)
		p.want("while a big message is held", map[string]int{})
		ask(p, api.QueuesComplete, &api.QueuesCompleteRequest{
			Lane: api.LaneRef{Queue: "jobs"}, Items: []api.CompleteItem{{Token: big.Deliveries[0].Token, Action: api.ActionAck}},
		})
		p.want("after the big message there is room for three", map[string]int{"jobs5000": 3})
	})
}
