package group

import (
	"reflect"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
)

// again is a receive under an id that can be repeated.
func (b *bed) again(id string) (*api.SubscriptionsReceiveResponse, error) {
	b.t.Helper()
	return b.tryReceive(api.SubscriptionsReceiveRequest{RequestID: id, MaxEvents: 3, LeaseSeconds: 60})
}

func TestARepeatedReceiveAnswersTheSameDeliveriesWhileTheyAreLeased(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(5)
	b.terminal(b.one())
	_, err := b.redrive(1, 0)
	b.must(err)
	id := b.id()
	first, err := b.again(id)
	b.must(err)
	if len(first.Deliveries) != 3 || !first.Deliveries[0].Redriven {
		t.Fatalf("%+v", first)
	}
	b.later(59_000)
	before := b.rows()
	b.restart()
	got, err := b.again(id)
	b.must(err)
	if !b.replayed || !reflect.DeepEqual(got, first) {
		t.Errorf("answered %+v, want %+v", got, first)
	}
	b.same("a repeat", before)
	_, err = b.tryReceive(api.SubscriptionsReceiveRequest{RequestID: id, MaxEvents: 2, LeaseSeconds: 60})
	wants(t, "the id with another request", err, "Conflict/command_id_reused")
	b.now += 1_000
	_, err = b.again(id)
	wants(t, "a repeat after the leases", err, "LeaseExpired/lease_expired")
	b.tick()
	_, err = b.again(id)
	wants(t, "a repeat after they were lost", err, "StaleLease/lease_replaced")
}

func TestARepeatedReceiveIsStaleOnceOneOfItsLeasesEnded(t *testing.T) {
	for what, end := range map[string]func(b *bed, d api.GroupDelivery){
		"acknowledged": func(b *bed, d api.GroupDelivery) { b.ack(d) },
		"refused":      func(b *bed, d api.GroupDelivery) { b.nack(d, 0) },
		"renewed":      func(b *bed, d api.GroupDelivery) { b.did(api.CompleteItem{Token: d.Token, Action: api.ActionRenew}) },
	} {
		b := newBed(t, api.GroupPolicy{})
		b.fill(3)
		id := b.id()
		first, err := b.again(id)
		b.must(err)
		end(b, first.Deliveries[1])
		_, err = b.again(id)
		wants(t, "a repeat after one was "+what, err, "StaleLease/lease_replaced")
	}
	b := newBed(t, api.GroupPolicy{})
	b.fill(3)
	id := b.id()
	_, err := b.again(id)
	b.must(err)
	b.seek(1)
	b.receive(3)
	_, err = b.again(id)
	wants(t, "a repeat after a seek", err, "TokenInvalidated/generation_changed")
}

// A group of the same name gives the same lease numbers: what is leased there is
// another worker's.
func TestARepeatedReceiveOfADeletedGroupGetsNothingOfTheNextOne(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(3)
	id := b.id()
	first, err := b.again(id)
	b.must(err)
	b.must(b.delete("g", 0))
	_, err = b.again(id)
	wants(t, "a repeat after the deletion", err, "NotFound/unknown_group")
	b.create("g", api.GroupDefinition{})
	other, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: 3, LeaseSeconds: 60})
	b.must(err)
	if first.Deliveries[0].LeaseVersion != other.Deliveries[0].LeaseVersion {
		t.Fatal("the lease numbers differ: the test shows nothing")
	}
	got, err := b.again(id)
	wants(t, "a repeat at the next group", err, "TokenInvalidated/generation_changed")
	if err == nil {
		t.Errorf("it answers %+v, which was given to another", got)
	}
}

func TestARepeatedReceiveOfACallerWhosePolicyChangedGetsNothing(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	worker := api.Principal{ID: "worker", Tenant: "default", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1}
	b.principal(worker)
	b.fill(3)
	id := b.id()
	b.as("worker", func() { b.must(second(b.again(id))) })
	worker.PolicyEpoch++
	b.principal(worker)
	b.as("worker", func() { wants(t, "a repeat", second(b.again(id)), "PermissionDenied/policy_epoch") })
}

func TestARepeatedCompleteAnswersTheSameResultsAndTokens(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(4)
	d := b.receive(4).Deliveries
	req := &api.SubscriptionsCompleteRequest{CommandID: b.id(), Group: b.ref("g"), Items: []api.CompleteItem{
		{Token: d[0].Token, Action: api.ActionAck}, {Token: d[1].Token, Action: api.ActionRenew, LeaseSeconds: 60},
		{Token: "nonsense", Action: api.ActionRenew}, {Token: d[2].Token, Action: api.ActionNack, Failure: "f"}, {Token: d[3].Token, Action: api.ActionRenew, LeaseSeconds: 50},
	}}
	first, err := call(b, api.SubscriptionsComplete, req)
	b.must(err)
	if first.Results[1].Token == "" || first.Results[4].Token == "" || first.Results[2].Error == nil || !first.Results[2].Error.Recorded {
		t.Fatalf("%+v", first.Results)
	}
	before := b.rows()
	b.restart()
	got, err := call(b, api.SubscriptionsComplete, req)
	b.must(err)
	if !b.replayed || !reflect.DeepEqual(got, first) {
		t.Errorf("answered %+v, want %+v", got, first)
	}
	b.same("a repeat", before)
	b.ack(api.GroupDelivery{Token: got.Results[1].Token}, api.GroupDelivery{Token: got.Results[4].Token})
	b.looks(2, 4, "3 [4-4]")
	again, err := call(b, api.SubscriptionsComplete, req) // it says what was, not what is
	b.must(err)
	if !slices.EqualFunc(again.Results, first.Results, func(x, y api.PositionResult) bool { return reflect.DeepEqual(x, y) }) {
		t.Errorf("answered %+v", again.Results)
	}
}

func TestAnEmptyReceiveIsNoReceiptAndIsEvaluatedAgain(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	id := b.id()
	if r, err := b.again(id); err != nil || len(r.Deliveries) != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	b.fill(1)
	r, err := b.again(id)
	b.must(err)
	if b.replayed || !slices.Equal(positions(r), []uint64{1}) {
		t.Errorf("answered %+v", r)
	}
}
