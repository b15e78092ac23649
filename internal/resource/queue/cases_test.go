package queue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

// Tests named after the field cases they answer.

func TestCase004_NoneOfAHundredAckedMessagesComesBack(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(100)
	for _, d := range b.receive(100).Deliveries {
		b.ack(d)
	}
	b.restart()
	b.later(100_000)
	if r := b.receive(100); len(r.Deliveries) != 0 {
		t.Errorf("%d came back", len(r.Deliveries))
	}
}

func TestCase006_AMessageWhoseAckWasLostIsDeliveredAgainAfterItsLease(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(100)
	ds := b.receive(100).Deliveries
	b.ack(slices.Concat(ds[:2], ds[3:])...)
	b.later(31_000)
	if d := b.one(); d.MessageID != ds[2].MessageID || d.Attempt != 2 {
		t.Errorf("delivered %s", d.MessageID)
	}
}

func TestCase011_NackedMessagesAreRowsThatComeBackInDueOrderEachOnce(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(300)
	for i := range 3 {
		for j, d := range b.receive(100).Deliveries {
			b.nack(d, int64(3_600_000-100*i-j))
		}
	}
	b.restart()
	b.later(3_600_000)
	var got []string
	for {
		r := b.receive(256)
		if len(r.Deliveries) == 0 {
			break
		}
		got = append(got, ids(r)...)
	}
	want := slices.Clone(got)
	slices.Sort(want)
	want = slices.Compact(want)
	slices.Reverse(want)
	if len(got) != 300 || !slices.Equal(got, want) {
		t.Errorf("%d came back, %d different, the first %v", len(got), len(want), got[:min(3, len(got))])
	}
}

func TestCase024_RetriesThatWaitTakeNoRoomInFlight(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightMessages: 50, MaxAttempts: 1_000})
	b.fill(1_100) // the first 100 are poison
	good := 0
	for good < 1_000 {
		r := b.receive(50)
		if len(r.Deliveries) == 0 {
			t.Fatalf("healthy messages starve: %+v", r)
		}
		for _, d := range r.Deliveries {
			if d.MessageID <= "m0000100" {
				b.nack(d, 1_000)
			} else {
				b.ack(d)
				good++
			}
		}
	}
	if b.now != start {
		t.Errorf("time had to pass")
	}
}

func TestCase037_LookingChangesNothing(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 1})
	b.fill(3)
	b.kill(1)
	before := b.rows()
	for range 100 {
		b.inspect("m0000001")
		b.explain("m0000001")
		b.status()
		_, err := ask(b, api.QueuesList, &api.QueuesListRequest{Lane: b.lane(), State: api.StateDeadLettered})
		b.must(err)
	}
	if !equalRows(before, b.rows()) {
		t.Errorf("looking changed rows")
	}
}

func TestCase039_ARaisedLimitHoldsAtTheNextClaim(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightMessages: 4})
	b.fill(8)
	b.receive(8)
	b.now += 40_000
	p := b.policy()
	p.MaxInFlightMessages = 8
	b.configure("work", p, func(*api.Resource) {})
	if r := b.receive(8); len(r.Deliveries) != 8 {
		t.Errorf("received %d (%s): the four whose leases ended and the four behind them are 8", len(r.Deliveries), r.Reason)
	}
}

func TestCase046_ARevokedWorkerOnlyLosesItsLeases(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.principal(api.Principal{ID: "w", Tenant: "default", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1})
	b.fill(10)
	b.tenant, b.who = "default", "w"
	b.receive(10)
	b.principal(api.Principal{ID: "w", Tenant: "default", Revoked: true, PolicyEpoch: 2})
	b.tenant, b.who = "", "root"
	b.later(31_000)
	if r := b.receive(10); len(r.Deliveries) != 10 {
		t.Errorf("another worker gets %d of 10", len(r.Deliveries))
	}
}

func TestCase047_AMissingBodyIsNamedAndStopsOnlyItsMessage(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(10)
	b.write(func(c *op.Ctx) error {
		bodies.Delete(c.Tx, seqKey{b.owner(), 5})
		return nil
	})
	if _, err := ask(b, api.QueuesInspect, &api.QueuesInspectRequest{Lane: b.lane(), MessageID: "m0000005", IncludePayload: true}); code(err) != "Corruption/body_missing" {
		t.Errorf("inspect: %v", err)
	}
	// The receive that meets it is refused and names it; the shard goes on.
	_, err := call(b, api.QueuesReceive, &api.QueuesReceiveRequest{RequestID: b.id(), Lane: b.lane(), MaxMessages: 10})
	if f := fault.From(err); f == nil || f.Code != fault.Corruption || f.Facts["messageId"] != "m0000005" || f.Facts["queue"] != "work" {
		t.Fatalf("receive: %v", err)
	}
	// The message can be taken out of the way.
	_, err = b.commit(api.Mutation{CancelMessage: &api.CancelMessage{Queue: "work", MessageID: "m0000005", ExpectedStateVersion: 1, ExpectedDeliveryGeneration: 1}})
	b.must(err)
	if r := b.receive(10); len(r.Deliveries) != 9 {
		t.Errorf("received %d of the other 9", len(r.Deliveries))
	}
}

func TestCase051_AnEmptyReceiveWritesNothing(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(1)
	b.ack(b.one())
	before := b.rows()
	for range 1_000 {
		if r, err := b.cheap(api.QueuesReceiveRequest{WaitMillis: 10}); err != nil || r == nil || r.Reason != api.ReasonEmpty {
			t.Fatalf("%+v %v", r, err)
		}
	}
	if !equalRows(before, b.rows()) {
		t.Errorf("empty receives changed rows")
	}
}

func TestCase054_ALoweredLimitIsAppliedWithoutDeliveringAgain(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 5})
	b.enqueue(msg("waits"), msg("ready"))
	for range 3 {
		for _, d := range b.receive(2).Deliveries {
			delay := int64(0)
			if d.MessageID == "waits" && d.Attempt == 3 {
				delay = 1_000
			}
			b.nack(d, delay)
		}
	}
	p := b.policy()
	p.MaxAttempts = 2
	b.configure("work", p, func(*api.Resource) {})
	for _, id := range []string{"waits", "ready"} {
		if e := b.explain(id); e.Deliverable || e.Reason != "attemptsExhausted" {
			t.Errorf("explain %s: %+v", id, e)
		}
	}
	b.tick() // no worker is connected, and nothing is due yet
	for _, id := range []string{"waits", "ready"} {
		if got := b.state(id); got != api.StateDeadLettered {
			t.Errorf("%s is %s after the tick", id, got)
		}
	}
}

func TestCase056_AnExpiredLeaseSaysWhatHappenedAndWhatToDo(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(1)
	d := b.one()
	b.now += 30_000
	f := b.ack(d)[0].Error
	for _, fact := range []string{"deadline", "serverTime", "attempts", "state", "nextAction"} {
		if f.Facts[fact] == "" {
			t.Errorf("no %s in %v", fact, f.Facts)
		}
	}
}

func TestCase059_ARedrivenMessageStartsItsAttemptsAnew(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 1})
	b.fill(1)
	for generation := uint64(1); generation <= 3; generation++ {
		d := b.one()
		if d.Attempt != 1 || d.DeliveryGeneration != generation {
			t.Errorf("delivery %+v in generation %d", d, generation)
		}
		b.nack(d, -1)
		if _, err := b.redrive(d.MessageID); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.status(); s.Totals.Redriven != 3 || s.Totals.DeadLettered != 3 {
		t.Errorf("totals: %+v", s.Totals)
	}
}

func TestCase061_AStaleHandleCannotTouchTheNewDelivery(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(1)
	old := b.one()
	b.later(31_000)
	fresh := b.one()
	for _, action := range []api.CompleteAction{api.ActionAck, api.ActionNack, api.ActionRenew, api.ActionRelease} {
		before := b.rows()
		if r := b.complete(api.CompleteItem{Token: old.Token, Action: action})[0]; code(r.Error) != "StaleLease/lease_replaced" {
			t.Errorf("%s with the old handle: %v", action, code(r.Error))
		}
		if !equalRows(before, b.rows()) {
			t.Errorf("%s with the old handle changed rows", action)
		}
	}
	if r := b.ack(fresh)[0]; r.Error != nil {
		t.Errorf("the new holder's ack: %v", r.Error)
	}
}

func TestCase072_TheSweepTakesNothingFromAMessageThatMovedOn(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(3)
	ds := b.receive(3).Deliveries
	b.now += 29_999
	r := b.complete(api.CompleteItem{Token: ds[0].Token, Action: api.ActionRenew}, api.CompleteItem{Token: ds[1].Token, Action: api.ActionAck})
	b.now++
	b.tick()
	for id, want := range map[string]api.MessageState{"m0000001": api.StateLeased, "m0000002": api.StateAcked, "m0000003": api.StateScheduled} {
		if got := b.state(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	ds[0].Token = r[0].Token
	if r := b.ack(ds[0])[0]; r.Error != nil {
		t.Errorf("ack after the renewal: %v", r.Error)
	}
}

func TestCase077_AnIDIsFreeAgainOnceItsMessageIsFinishedAndForgotten(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 1, FinishedRetentionSeconds: 10})
	b.enqueue(msg("unique"))
	b.one()
	b.later(30_000)
	if f := b.refused("Conflict/message_exists", func() error { return b.tryEnqueue(msg("unique")) }); f.Facts["state"] != "deadLettered" {
		t.Errorf("facts: %v", f.Facts)
	}
	b.must(b.cancel("unique"))
	b.later(10_000)
	b.enqueue(msg("unique"))
	b.one()
}

func TestCase079_LeaseLossesAndFailuresAreCountedApart(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 5})
	b.fill(1)
	for range 3 {
		b.one()
		b.later(60_000)
	}
	b.nack(b.one(), 0)
	i := b.inspect("m0000001")
	if i.Attempts != 4 || i.LeaseLosses != 3 || i.Failures != 1 || i.State != api.StateReady {
		t.Errorf("%+v", i)
	}
}

func TestCase081_EachLeaseEndsAtItsOwnTime(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxLeaseSeconds: 3_600})
	b.fill(2)
	for _, seconds := range []int64{3_600, 5} {
		_, err := b.tryReceive(api.QueuesReceiveRequest{LeaseSeconds: seconds})
		b.must(err)
	}
	b.later(5_000)
	if b.state("m0000002") != api.StateScheduled || b.state("m0000001") != api.StateLeased {
		t.Errorf("after 5 s: %s and %s", b.state("m0000001"), b.state("m0000002"))
	}
	b.later(3_595_000)
	if b.state("m0000001") != api.StateScheduled {
		t.Errorf("after an hour: %s", b.state("m0000001"))
	}
}

func TestCase089_TwoSweepsOfOneMomentTakeEachMessageOnce(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(20)
	b.receive(20)
	b.now += 31_000
	b.tick()
	r := b.receive(20)
	b.tick()
	if s := b.status(); s.Totals.LeasesLost != 20 || s.Totals.Delivered != 40 || len(r.Deliveries) != 20 {
		t.Errorf("totals: %+v", s.Totals)
	}
}

func TestCase106_AnAckAfterTheDeadlineIsRefusedAndTheMessageStaysDeliverable(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(1)
	d := b.one()
	b.now += 31_000
	if r := b.ack(d)[0]; code(r.Error) != "LeaseExpired/lease_expired" {
		t.Errorf("ack: %v", r.Error)
	}
	if again := b.one(); again.MessageID != d.MessageID || again.Attempt != 2 {
		t.Errorf("delivered %+v", again)
	}
}

func TestASweepOfOneReceiveIsBoundedAndSaysThatItGoesOn(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightMessages: 10_000, Retry: api.RetryPolicy{BaseMillis: 86_400_000, MaxMillis: 86_400_000}})
	b.fill(600)
	for range 6 {
		b.receive(100)
	}
	b.now += 30_000
	for lost := int64(0); lost < 600; {
		r := b.receive(10)
		lost += r.Examined.Expired
		want := api.ReasonScanLimit
		if lost == 600 {
			want = api.ReasonScheduled
		}
		if r.Reason != want || r.Examined.Expired > 256 || r.Examined.Expired < 100 {
			t.Fatalf("after %d: %+v", lost, r)
		}
	}
	if s := b.status(); s.Counts.Scheduled != 600 || s.Totals.LeasesLost != 600 {
		t.Errorf("status: %+v", s)
	}
}

func TestAReceiveOverManyExpiredMessagesSaysThatItGoesOn(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for i := range 300 {
		m := msg(fmt.Sprintf("x%03d", i))
		m.ExpiresAt = api.Time(start + 10)
		b.enqueue(m)
	}
	b.enqueue(msg("good"))
	b.now += 10
	r := b.receive(1)
	if r.Reason != api.ReasonScanLimit || r.Examined.Ready != 256 || len(r.Deliveries) != 0 {
		t.Errorf("first: %+v", r)
	}
	if r = b.receive(1); len(r.Deliveries) != 1 || r.Examined.Ready != 45 {
		t.Errorf("second: %+v", r)
	}
}
