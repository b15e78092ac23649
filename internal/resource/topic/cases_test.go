package topic

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/machine"
)

// The field cases a topic answers for: what went wrong elsewhere, as a test.

func TestCase032ARetryIsAnsweredFromItsReceiptAndNeverCalledADuplicate(t *testing.T) {
	b := newBed(t)
	id := b.id()
	first, f := b.again(id, publishing(event("a"), api.Event{Type: "Placed", Payload: api.JSON("1"), SchemaVersion: 1}))
	if f != nil {
		t.Fatal(f)
	}
	b.restart()
	second, f := b.again(id, publishing(event("a"), api.Event{Type: "Placed", Payload: api.JSON("1"), SchemaVersion: 1}))
	if f != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("the retry was answered %+v, %v; first %+v", second, f, first)
	}
	if _, f := b.commit(publishing(event("a"))); f == nil || f.Code != fault.DuplicateEventID {
		t.Errorf("the same event under a new command id: %v", f)
	}
	// A refused batch leaves no id behind: its events can be published.
	if _, f := b.commit(publishing(event("b"), event("a"))); f == nil {
		t.Error("a repeat was stored")
	}
	if _, f := b.commit(publishing(event("b"))); f != nil {
		t.Errorf("an id was kept of a refused batch: %v", f)
	}
	b.check()
}

func TestCase034APurgeReplaysTheSameHoweverTheLogIsCut(t *testing.T) {
	run := func(seed uint64) uint64 {
		b := newBed(t)
		r := rand.New(rand.NewPCG(seed, 7))
		var commands []machine.Command
		add := func(m ...api.Mutation) { commands = append(commands, b.batch(request(b.id(), m...))) }
		for i := range 40 {
			list := make([]api.Event, 25)
			for j := range list {
				list[j] = event(fmt.Sprint("e", i, "-", j))
			}
			add(publishing(list...))
			if i == 20 {
				add(purging(10))
			}
			if i == 30 {
				add(purging(600), publishing(event("within a batch")))
			}
		}
		for range 8 {
			commands = append(commands, machine.Tick())
		}
		for len(commands) > 0 {
			n := 1
			if seed > 0 {
				n = 1 + r.IntN(len(commands))
			}
			b.entry(commands[:n]...)
			commands = commands[n:]
			if seed > 0 && r.IntN(2) == 0 {
				b.restart()
			}
		}
		b.check()
		page, f := b.read(api.EventsReadRequest{Source: ofOrders, AfterPosition: 600})
		if f != nil || page.FirstAvailable != 601 || page.Tail != 1001 {
			t.Fatalf("seed %d: %+v, %v", seed, page, f)
		}
		return b.m.Head().Digest
	}
	want := run(0)
	for seed := uint64(1); seed < 6; seed++ {
		if got := run(seed); got != want {
			t.Errorf("seed %d: digest %x, a twin that never restarted has %x", seed, got, want)
		}
	}
}

func TestCase037LookingAtATopicChangesNothing(t *testing.T) {
	b := newBed(t)
	b.commit(publishing(event("a"), event("b"), event("c")))
	b.commit(purging(1))
	before := b.m.Head()
	for i := range 100 {
		b.read(api.EventsReadRequest{Source: ofOrders, AfterPosition: uint64(i % 5)})
	}
	if b.m.Head() != before {
		t.Errorf("the shard is at %+v, was at %+v", b.m.Head(), before)
	}
	page, f := b.read(api.EventsReadRequest{Source: ofOrders, AfterPosition: 1})
	if f != nil || len(page.Events) != 2 {
		t.Errorf("after looking: %+v, %v", page, f)
	}
}

func TestCase092AnIDThatIsNoIDIsRefusedBeforeTheLog(t *testing.T) {
	long := strings.Repeat("x", 257)
	for _, id := range []string{" ", "\x00", "a\x00b", "a\nb", "\x7f", long, strings.Repeat("x", 10_240), "\xff\xfe"} {
		req := request("01890000-0000-7000-8000-000000000001", publishing(event("x")))
		req.Mutations[0].Publish.Events[0].EventID = id
		if len(api.Validate(req)) == 0 {
			t.Errorf("event id %.20q is accepted", id)
		}
		req = request("01890000-0000-7000-8000-000000000001", publishing(event("x")))
		req.Mutations[0].Publish.Topic = id
		if len(api.Validate(req)) == 0 {
			t.Errorf("topic %.20q is accepted", id)
		}
	}
	b := newBed(t)
	look := []api.Event{event("а"), event("a"), event("A"), event(long[:256])} // the first is Cyrillic
	if _, f := b.commit(publishing(look...)); f != nil {
		t.Errorf("ids that look alike are different ids: %v", f)
	}
	// An empty id is an absent one: it is derived, once and for good.
	id := b.id()
	first, f := b.again(id, publishing(event("")), publishing(event(""), event("")))
	if f != nil || len(first.Results[0].EventIDs) != 1 || len(first.Results[1].EventIDs) != 2 {
		t.Fatalf("derived ids: %+v, %v", first, f)
	}
	page, _ := b.read(api.EventsReadRequest{Source: ofOrders, AfterPosition: 4})
	for i, want := range append(first.Results[0].EventIDs, first.Results[1].EventIDs...) {
		if got := page.Events[i].EventID; got != want || got == "" {
			t.Errorf("event %d has id %q, the receipt says %q", i, got, want)
		}
	}
	b.check()
}

func TestCase112ARetryAfterAnUnknownOutcomeKeepsOrderAndStoresOnce(t *testing.T) {
	b := newBed(t)
	for i := range 100 {
		id := b.id()
		for range 1 + i%3 { // replies were lost; the producer repeats the same command
			if _, f := b.again(id, publishing(event(fmt.Sprint("k", i)))); f != nil {
				t.Fatal(f)
			}
			if i%10 == 0 {
				b.restart()
			}
		}
	}
	page, f := b.read(api.EventsReadRequest{Source: ofOrders, Limit: 1000})
	if f != nil || len(page.Events) != 100 {
		t.Fatalf("%d events, %v", len(page.Events), f)
	}
	for i, e := range page.Events {
		if e.EventID != fmt.Sprint("k", i) {
			t.Errorf("position %d is %s", e.Position, e.EventID)
		}
	}
}
