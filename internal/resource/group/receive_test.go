package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
)

func TestAFilterDeliversTypesExactlyAndByPrefix(t *testing.T) {
	for _, c := range []struct {
		types []string
		want  []uint64
	}{
		{nil, upTo(1, 6)},
		{[]string{"order"}, []uint64{1}},
		{[]string{"order*"}, []uint64{1, 2, 3, 4}},
		{[]string{"order.*"}, []uint64{2, 3}},
		{[]string{"ord", "x"}, []uint64{}},
		{[]string{"*"}, upTo(1, 6)},
		{[]string{"invoice", "order.paid"}, []uint64{3, 5}},
	} {
		t.Run(fmt.Sprint(c.types), func(t *testing.T) {
			b := newBed(t, api.GroupPolicy{})
			b.kinds(6, "order", "order.new", "order.paid", "orders", "invoice", "Order")
			b.reconfigure(api.GroupDefinition{Filter: api.GroupFilter{EventTypes: c.types}})
			r := b.receive(10)
			if !slices.Equal(positions(r), c.want) {
				t.Errorf("received %v, want %v", positions(r), c.want)
			}
			b.ack(r.Deliveries...)
			if s := b.status(); s.State.Checkpoint != 6 || s.Totals.PassedOver != int64(6-len(c.want)) || s.Counts.Matched != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestAFilterWantsEveryHeaderWithOneOfItsValues(t *testing.T) {
	with := func(pairs ...string) api.Event {
		e := event("a")
		e.Headers = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			e.Headers[pairs[i]] = pairs[i+1]
		}
		return e
	}
	for _, c := range []struct {
		headers map[string][]string
		want    []uint64
	}{
		{map[string][]string{"region": {"eu"}}, []uint64{2, 4}},
		{map[string][]string{"region": {"us", "eu"}}, []uint64{2, 3, 4}},
		{map[string][]string{"region": {}}, []uint64{2, 3, 4, 5}},
		{map[string][]string{"region": {"eu"}, "kind": {"b2b"}}, []uint64{4}},
		{map[string][]string{"region": {}, "kind": {}}, []uint64{4, 5}},
		{map[string][]string{"Region": {"eu"}}, []uint64{}},
	} {
		t.Run(fmt.Sprint(c.headers), func(t *testing.T) {
			b := newBed(t, api.GroupPolicy{})
			b.publish(event("a"), with("region", "eu"), with("region", "us", "z", "1"), with("kind", "b2b", "region", "eu"), with("a", "", "kind", "", "region", ""))
			b.reconfigure(api.GroupDefinition{Filter: api.GroupFilter{Headers: c.headers, EventTypes: []string{"a"}}})
			if r := b.receive(10); !slices.Equal(positions(r), c.want) {
				t.Errorf("received %v, want %v", positions(r), c.want)
			}
		})
	}
}

func TestPassedOverPositionsFoldIntoRunsThatDoNotFillTheWindow(t *testing.T) {
	b := emptyBedOf(t)
	b.create("g", api.GroupDefinition{Filter: api.GroupFilter{EventTypes: []string{"a"}}, Policy: api.GroupPolicy{MaxWindow: 3}})
	b.kinds(100, "b", "b", "b", "b", "b", "b", "b", "b", "b", "a") // 10, 20, …
	r := b.receive(5)
	if !slices.Equal(positions(r), []uint64{10, 20, 30}) || r.Examined.Positions != 30 {
		t.Fatalf("received %v, examined %+v", positions(r), r.Examined)
	}
	b.looks(9, 30, "10* [11-19] 20* [21-29] 30*")
	b.check()
	if s := b.status(); s.Counts.Matched != 3 || s.Counts.Runs != 2 || s.Totals.PassedOver != 27 || s.CompletedAhead != 18 {
		t.Errorf("%+v", s)
	}
	b.ack(r.Deliveries[1])
	b.looks(9, 30, "10* [11-29] 30*")
	if r := b.receive(1); r.Reason != api.ReasonWindowFull || r.BlockedBy != 10 {
		t.Errorf("answered %+v", r)
	}
	b.ack(r.Deliveries[0])
	b.looks(29, 30, "30*")
	if r := b.receive(5); !slices.Equal(positions(r), []uint64{40, 50}) { // the trailing ones are passed over when they are looked at
		t.Errorf("received %v", positions(r))
	}
	b.looks(29, 50, "30* [31-39] 40* [41-49] 50*")
	b.ack(r.Deliveries[2])
	b.looks(39, 50, "40* [41-49] 50*")
}

func emptyBedOf(t *testing.T) *bed { t.Helper(); return emptyBed(t, memFS(), false) }

func TestOneReceiveLooksAtTwoHundredFiftySixNewPositions(t *testing.T) {
	for _, c := range []struct {
		passed    int
		delivered bool
		reason    api.EmptyReason
		issued    uint64
	}{
		{254, true, "", 255}, {255, true, "", 256}, {256, false, api.ReasonScanLimit, 256}, {257, false, api.ReasonScanLimit, 256},
	} {
		t.Run(fmt.Sprint(c.passed), func(t *testing.T) {
			b := emptyBedOf(t)
			b.create("g", api.GroupDefinition{Filter: api.GroupFilter{EventTypes: []string{"a"}}})
			b.kinds(c.passed, "b")
			b.fill(1)
			r := b.receive(1)
			if (len(r.Deliveries) == 1) != c.delivered || r.Reason != c.reason || r.Examined.Positions != int64(c.issued) {
				t.Fatalf("answered %+v", r)
			}
			if s := b.status().State; s.Issued != c.issued || s.Checkpoint != min(c.issued, uint64(c.passed)) {
				t.Errorf("%+v", s)
			}
			if !c.delivered { // progress was kept
				if d := b.one(); d.Event.Position != uint64(c.passed+1) {
					t.Errorf("delivered %d", d.Event.Position)
				}
			}
		})
	}
}

func TestOnlyAScanThatLeftSomethingSaysScanLimit(t *testing.T) {
	for _, c := range []struct {
		events int
		reason api.EmptyReason
	}{{255, api.ReasonEmpty}, {256, api.ReasonEmpty}, {257, api.ReasonScanLimit}} {
		b := emptyBedOf(t)
		b.create("g", api.GroupDefinition{Filter: api.GroupFilter{EventTypes: []string{"a"}}})
		b.kinds(c.events, "b")
		if r := b.receive(1); r.Reason != c.reason || r.Examined.Positions != int64(min(c.events, 256)) {
			t.Errorf("%d events: %+v", c.events, r)
		}
		b.receive(1)
		b.looks(uint64(c.events), uint64(c.events), "")
	}
}

func TestAReceiveTakesNoMoreBytesThanItAsksFor(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	for _, n := range []int{100, 100, 100, 5000, 10} {
		e := event("a")
		e.Payload = api.JSON(`"` + strings.Repeat("x", n-2) + `"`)
		b.publish(e)
	}
	take := func(max int64) ([]uint64, error) {
		r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: 10, MaxBytes: max})
		if err != nil {
			return nil, err
		}
		return positions(r), nil
	}
	before := b.rows()
	if _, err := take(99); code(err) != "ResourceExhausted/message_too_large" || facts(err)["position"] != "1" || facts(err)["bytes"] != "100" {
		t.Errorf("%v %v", err, facts(err))
	}
	b.same("a refused receive", before)
	for _, c := range []struct {
		max  int64
		want []uint64
	}{{199, []uint64{1}}, {200, []uint64{2, 3}}} {
		if got, err := take(c.max); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d bytes: %v, %v", c.max, got, err)
		}
	}
	if _, err := take(4999); code(err) != "ResourceExhausted/message_too_large" || facts(err)["position"] != "4" {
		t.Errorf("%v", err)
	}
	if got, err := take(5010); err != nil || !slices.Equal(got, []uint64{4, 5}) {
		t.Errorf("%v %v", got, err)
	}
	b.later(31_000) // the same of positions to be tried again
	if _, err := take(99); code(err) != "ResourceExhausted/message_too_large" || facts(err)["position"] != "1" {
		t.Errorf("%v", err)
	}
	if got, err := take(300); err != nil || !slices.Equal(got, upTo(1, 3)) {
		t.Errorf("%v %v", got, err)
	}
}

func TestAReceiveWithNothingToFindIsAnsweredWithoutTheLogAndSaysWhy(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxWindow: 4, MaxInFlight: 3})
	want := func(reason api.EmptyReason, next int64, by uint64) {
		t.Helper()
		before := b.rows()
		r, err := b.cheap(api.SubscriptionsReceiveRequest{})
		b.must(err)
		if r == nil || len(r.Deliveries) != 0 || r.Reason != reason || r.NextDueAt != api.Time(next) || r.BlockedBy != by || r.Generation != 1 || r.Receipt.CommandID != "" {
			t.Errorf("answered %+v, want %s, next %d, blocked by %d", r, reason, next, by)
			return
		}
		logged := b.receive(1) // the log agrees, and changes nothing
		if logged.Reason != reason || logged.NextDueAt != r.NextDueAt || logged.BlockedBy != by {
			t.Errorf("the log says %+v, want %+v", logged, r)
		}
		b.same("an empty receive", before)
	}
	want(api.ReasonEmpty, 0, 0)
	b.fill(3)
	if r, err := b.cheap(api.SubscriptionsReceiveRequest{}); r != nil || err != nil {
		t.Errorf("certain, with events there: %+v %v", r, err)
	}
	d := b.receive(3).Deliveries
	want(api.ReasonEmpty, start+30_000, 0)
	b.fill(2)
	want(api.ReasonInFlightLimit, start+30_000, 1)
	b.nack(d[0], 10_000)
	d = append(d, b.one())
	b.ack(d[1:3]...)
	want(api.ReasonWindowFull, start+10_000, 1)
	b.ack(d[3])
	want(api.ReasonWindowFull, start+10_000, 1)
	b.now += 10_000
	if r, err := b.cheap(api.SubscriptionsReceiveRequest{}); r != nil || err != nil {
		t.Errorf("certain, with a retry due: %+v %v", r, err)
	}
	b.ack(b.one())
	b.ack(b.one())
	want(api.ReasonEmpty, 0, 0)
	b.fill(1)
	b.nack(b.one(), 5_000)
	want(api.ReasonScheduled, start+15_000, 0)
}

func TestPerKeyOnlyTheOldestUnfinishedEventOfAKeyIsDelivered(t *testing.T) {
	b := newBed(t, api.GroupPolicy{Ordered: api.OrderPerKey, MaxAttempts: 2})
	b.publish(keyedEvent("x"), keyedEvent("x"), keyedEvent("y"), event("a"), keyedEvent("x"), event("a"))
	r := b.receive(10)
	if !slices.Equal(positions(r), []uint64{1, 3, 4, 6}) {
		t.Fatalf("received %v", positions(r))
	}
	b.check()
	if s := b.status(); s.Counts.Blocked != 2 || s.Counts.Leased != 4 || s.State.Issued != 6 {
		t.Errorf("%+v", s.Counts)
	}
	if r := b.receive(1); r.Reason != api.ReasonKeyBlocked {
		t.Errorf("answered %+v", r)
	}
	if e := b.explain(2); e.State != api.PositionBlocked || e.Reason != string(api.ReasonKeyBlocked) || e.Deliverable {
		t.Errorf("explained %+v", e)
	}
	b.nack(r.Deliveries[0], 5_000) // a retry keeps its place in the order
	if r := b.receive(1); len(r.Deliveries) != 0 || r.Reason != api.ReasonScheduled {
		t.Errorf("answered %+v", r)
	}
	b.later(5_000)
	d := b.one()
	if d.Event.Position != 1 {
		t.Errorf("delivered %d", d.Event.Position)
	}
	b.did(api.CompleteItem{Token: d.Token, Action: api.ActionNack, Terminal: true}) // a dead letter gives its key free
	if d := b.one(); d.Event.Position != 2 {
		t.Errorf("delivered %d", d.Event.Position)
	} else {
		b.check()
		b.ack(d)
	}
	if d := b.one(); d.Event.Position != 5 || d.Attempt != 1 {
		t.Errorf("delivered %d", d.Event.Position)
	}
}

func TestPerKeyAKeyIsAHeaderWhenThePolicyNamesOne(t *testing.T) {
	b := newBed(t, api.GroupPolicy{Ordered: api.OrderPerKey, OrderingHeader: "account"})
	of := func(account string) api.Event {
		e := keyedEvent("same")
		if account != "" {
			e.Headers = map[string]string{"account": account, "b": "c"}
		}
		return e
	}
	long := strings.Repeat("k", maxKeyBytes)
	b.publish(of("1"), of("2"), of(""), of("1"), of(""), of(long+"1"), of(long+"2"), of(long[1:]))
	if r := b.receive(10); !slices.Equal(positions(r), []uint64{1, 2, 3, 5, 6, 8}) {
		t.Errorf("received %v", positions(r))
	}
}

func TestPerKeyOtherKeysGoOnPastABlockedOneWhateverItsSize(t *testing.T) {
	b := newBed(t, api.GroupPolicy{Ordered: api.OrderPerKey})
	big := keyedEvent("x")
	big.Payload = api.JSON(`"` + strings.Repeat("x", 500) + `"`)
	b.publish(keyedEvent("x"), big, big, keyedEvent("y"))
	b.one()
	for range 4 {
		r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxBytes: 100})
		b.must(err)
		if len(r.Deliveries) == 1 && r.Deliveries[0].Event.Position == 4 {
			return
		}
		if r.Reason != api.ReasonScanLimit {
			t.Fatalf("position 4 can be delivered, and the answer is %+v", r)
		}
	}
	t.Error("position 4 never came")
}

func TestPerKeyBlockedPositionsCountTowardTheWindow(t *testing.T) {
	b := newBed(t, api.GroupPolicy{Ordered: api.OrderPerKey, MaxWindow: 4})
	b.publish(keyedEvent("x"), keyedEvent("x"), keyedEvent("x"), keyedEvent("x"), keyedEvent("y"))
	r := b.receive(5)
	if !slices.Equal(positions(r), []uint64{1}) {
		t.Fatalf("received %v", positions(r))
	}
	b.looks(0, 4, "1* 2 3 4")
	if r := b.receive(5); r.Reason != api.ReasonWindowFull || r.BlockedBy != 1 {
		t.Errorf("answered %+v", r)
	}
	b.ack(r.Deliveries...)
	if r := b.receive(5); !slices.Equal(positions(r), []uint64{2, 5}) {
		t.Errorf("received %v", positions(r))
	}
}

func TestAGroupReadsOneGenerationOfAStream(t *testing.T) {
	b := emptyBedOf(t)
	ref := api.GroupRef{Source: b.stream("s"), Group: "g"}
	ref.Source.Generation = 2
	_, err := call(b, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{CommandID: b.id(), Group: ref, Definition: defined(api.GroupDefinition{})})
	b.must(err)
	for _, generation := range []uint64{1, 2, 2} {
		b.must(b.commit(api.Mutation{AppendEvents: &api.AppendEvents{StreamSet: "streams", StreamID: "s", Generation: generation, Expected: api.ExpectAny(), Events: []api.Event{event("a")}}}))
	}
	r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: 10, Group: ref})
	b.must(err)
	if !slices.Equal(positions(r), []uint64{1, 2}) {
		t.Errorf("received %v", positions(r))
	}
	other := ref
	other.Source.Generation = 1
	_, err = b.tryReceive(api.SubscriptionsReceiveRequest{Group: other})
	wants(t, "the group of another generation", err, "NotFound/unknown_group")
}
