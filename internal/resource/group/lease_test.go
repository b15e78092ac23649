package group

import (
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
)

// row is how status shows a position of the window.
func (b *bed) row(position uint64) api.WindowRow {
	b.t.Helper()
	for _, r := range b.status().Window {
		if r.From <= position && position <= r.To {
			return r
		}
	}
	return api.WindowRow{}
}

func TestANackWaitsAsThePolicySaysAndGrowsWithEveryFailure(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 10, Retry: api.RetryPolicy{BaseMillis: 1_000, MaxMillis: 5_000, Factor: 3}})
	b.fill(1)
	for i, wait := range []int64{1_000, 3_000, 5_000, 5_000} {
		d := b.one()
		if d.Attempt != int64(i+1) {
			t.Errorf("attempt %d, want %d", d.Attempt, i+1)
		}
		r := b.nack(d, -1)
		if r.State != api.PositionWaiting || r.NotBefore != api.Time(b.now+wait) {
			t.Errorf("after %d failures: %+v, want a wait of %d ms", i+1, r, wait)
		}
		if w := b.row(1); w.State != api.PositionWaiting || w.NotBefore != r.NotBefore || w.Failures != int64(i+1) || w.LastFailure != "did not work" {
			t.Errorf("shown as %+v", w)
		}
		b.later(wait - 1)
		if r := b.receive(1); len(r.Deliveries) != 0 || r.Reason != api.ReasonScheduled || r.NextDueAt != api.Time(b.now+1) {
			t.Errorf("a millisecond early: %+v", r)
		}
		b.now++ // the receive sweeps by itself
	}
	b.one()
}

func TestADelayOfTheNackReplacesThePolicysAndNoneIsReadyAtOnce(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(2)
	d := b.receive(2).Deliveries
	if r := b.nack(d[0], 0); r.State != api.PositionReady || r.NotBefore != 0 {
		t.Errorf("%+v", r)
	}
	if r := b.nack(d[1], 2_592_000_000); r.State != api.PositionWaiting || r.NotBefore != api.Time(start+2_592_000_000) {
		t.Errorf("%+v", r)
	}
	b.looks(0, 2, "1 2")
	if d := b.one(); d.Event.Position != 1 || d.Attempt != 2 {
		t.Errorf("%+v", d)
	}
}

func TestJitterIsDrawnFromWhatTheLeaderLogged(t *testing.T) {
	waits := func(seed uint64) (out []int64) {
		b := newBed(t, api.GroupPolicy{MaxAttempts: 1000, Retry: api.RetryPolicy{BaseMillis: 100_000, MaxMillis: 100_000, Jitter: "full"}})
		b.seed = seed
		b.fill(1)
		for range 20 {
			wait := int64(b.nack(b.one(), -1).NotBefore)
			if wait != 0 { // 0 is no wait at all
				wait -= b.now
			}
			if wait < 0 || wait > 100_000 {
				t.Errorf("a wait of %d ms", wait)
			}
			out = append(out, wait)
			b.later(wait)
		}
		return out
	}
	one, again, other := waits(7), waits(7), waits(8)
	if !slices.Equal(one, again) || slices.Equal(one, other) {
		t.Errorf("seed 7: %v, again %v, seed 8: %v", one, again, other)
	}
	slices.Sort(one)
	if len(slices.Compact(one)) < 15 {
		t.Errorf("waits repeat: %v", one)
	}
}

func TestALostLeaseCountsAnAttemptAndWaitsFromTheInstantItEnded(t *testing.T) {
	b := newBed(t, api.GroupPolicy{Retry: api.RetryPolicy{BaseMillis: 2_000, MaxMillis: 60_000}})
	b.fill(2)
	d := b.receive(2).Deliveries
	b.ack(d[1])
	b.now += 29_999
	if r := b.receive(1); len(r.Deliveries) != 0 {
		t.Errorf("delivered before the lease ended")
	}
	b.later(1)
	if w := b.row(1); w.State != api.PositionWaiting || w.NotBefore != api.Time(start+32_000) || w.LeaseLosses != 1 || w.Attempts != 1 {
		t.Errorf("%+v", w)
	}
	b.now += 2_000
	again := b.one()
	if again.Event.Position != 1 || again.Attempt != 2 || again.LeaseVersion <= d[0].LeaseVersion {
		t.Errorf("%+v", again)
	}
	if s := b.status(); s.Totals.LeasesLost != 1 || s.Totals.Delivered != 3 {
		t.Errorf("%+v", s.Totals)
	}
}

func TestALateReceiveSweepsLeaseAndRetryTogether(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(300)
	b.receive(150)
	b.receive(150)
	b.now += 60_000
	r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: 256})
	b.must(err)
	if !slices.Equal(positions(r), upTo(1, 256)) || r.Examined.Expired != 256 || r.Examined.Ready != 256 {
		t.Fatalf("received %d, examined %+v", len(r.Deliveries), r.Examined)
	}
	b.check() // the rest is armed
	r = b.receive(256)
	if !slices.Equal(positions(r), upTo(257, 300)) || r.Examined.Expired != 44 {
		t.Errorf("received %d, examined %+v", len(r.Deliveries), r.Examined)
	}
}

func TestTicksDoTheSameInBoundedSteps(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(600)
	for range 3 {
		b.receive(200)
	}
	b.later(31_000)
	b.check()
	if s := b.status(); s.Counts.Ready != 600 || s.Totals.LeasesLost != 600 {
		t.Errorf("%+v", s.Counts)
	}
}

func TestALeaseIsRenewedByItsHolderUntilItsGreatestAge(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxLeaseSeconds: 60, MaxLeaseAgeSeconds: 90})
	b.fill(1)
	d := b.one()
	renew := func(token string, seconds int64) api.PositionResult {
		return b.complete(api.CompleteItem{Token: token, Action: api.ActionRenew, LeaseSeconds: seconds})[0]
	}
	before := b.rows()
	if r := renew(d.Token, 61); code(r.Error) != "Validation/invalid_field" {
		t.Errorf("%+v", r)
	}
	b.same("a renewal beyond maxLeaseSeconds", before)
	b.later(10_000)
	r := renew(d.Token, 60)
	if r.Error != nil || r.State != api.PositionLeased || r.LeaseUntil != api.Time(start+70_000) || r.Token == "" || r.Token == d.Token {
		t.Fatalf("%+v", r)
	}
	if old := b.complete(api.CompleteItem{Token: d.Token, Action: api.ActionAck})[0]; code(old.Error) != "StaleLease/lease_replaced" {
		t.Errorf("the old token: %+v", old)
	}
	b.later(50_000)
	last := renew(r.Token, 60)
	if last.LeaseUntil != api.Time(start+90_000) {
		t.Errorf("renewed until %s, want 90 s after the claim", last.LeaseUntil)
	}
	before = b.rows()
	if none := renew(last.Token, 60); code(none.Error) != "ResourceExhausted/lease_age_limit" || facts(none.Error)["limit"] != "maxLeaseAgeSeconds" {
		t.Errorf("%+v", none)
	}
	b.same("a renewal of a lease that is as old as it may get", before)
	b.later(29_999)
	b.ack(api.GroupDelivery{Token: last.Token})
}

func TestARenewalThatNamesNoLengthIsThirtySeconds(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(1)
	d := b.one()
	b.later(20_000)
	if r := b.did(api.CompleteItem{Token: d.Token, Action: api.ActionRenew}); r.LeaseUntil != api.Time(b.now+30_000) {
		t.Errorf("%+v", r)
	}
}

func TestAReleaseGivesTheEventBackAtOnceAndDoesNotCountTheAttempt(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 1})
	b.fill(1)
	for range 5 {
		d := b.one()
		if d.Attempt != 1 {
			t.Errorf("attempt %d", d.Attempt)
		}
		if r := b.did(api.CompleteItem{Token: d.Token, Action: api.ActionRelease}); r.State != api.PositionReady {
			t.Errorf("%+v", r)
		}
		b.looks(0, 1, "1")
	}
}

func TestALeaseIsAtMostWhatThePolicyAllows(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxLeaseSeconds: 20})
	b.fill(1)
	for seconds, want := range map[int64]string{19: "", 20: "", 21: "Validation/invalid_field"} {
		r, err := b.tryReceive(api.SubscriptionsReceiveRequest{LeaseSeconds: seconds})
		wants(t, "a lease", err, want)
		if err == nil {
			if r.Deliveries[0].LeaseUntil != api.Time(start+seconds*1000) {
				t.Errorf("%+v", r.Deliveries[0])
			}
			b.did(api.CompleteItem{Token: r.Deliveries[0].Token, Action: api.ActionRelease})
		}
	}
}

func TestALeaseHoldsUntilItsDeadlineAndNotAtIt(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(2)
	d := b.receive(2).Deliveries
	b.now += 29_999
	b.ack(d[0])
	b.now++
	before := b.rows()
	r := b.complete(api.CompleteItem{Token: d[1].Token, Action: api.ActionAck})[0]
	if code(r.Error) != "LeaseExpired/lease_expired" || r.Position != 2 || r.State != "" || facts(r.Error)["attempts"] != "1" {
		t.Errorf("%+v", r)
	}
	b.same("a late ack", before)
	b.tick()
	if r := b.complete(api.CompleteItem{Token: d[1].Token, Action: api.ActionAck})[0]; code(r.Error) != "StaleLease/lease_replaced" || facts(r.Error)["state"] != "waiting" {
		t.Errorf("%+v", r)
	}
}

func TestItemsOfOneCommandHaveTheirOwnOutcomes(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(6)
	d := b.receive(6).Deliveries
	zero := int64(0)
	r, err := b.tryComplete("g",
		api.CompleteItem{Token: d[0].Token, Action: api.ActionAck},
		api.CompleteItem{Token: "nonsense", Action: api.ActionAck},
		api.CompleteItem{Token: d[0].Token, Action: api.ActionNack},
		api.CompleteItem{Token: d[1].Token, Action: api.ActionNack, DelayMillis: &zero},
		api.CompleteItem{Token: d[1].Token, Action: api.ActionAck},
		api.CompleteItem{Token: d[2].Token, Action: api.ActionRenew, LeaseSeconds: 50},
		api.CompleteItem{Token: d[2].Token, Action: api.ActionRenew, LeaseSeconds: 60},
		api.CompleteItem{Token: d[3].Token, Action: api.ActionRelease},
		api.CompleteItem{Token: d[4].Token, Action: api.ActionNack, Terminal: true},
	)
	b.must(err)
	want := []string{"", "Validation/bad_token", "NotFound/unknown_delivery", "", "StaleLease/lease_replaced", "", "StaleLease/lease_replaced", "", ""}
	states := []api.PositionState{"finished", "", "", "ready", "", "leased", "", "ready", "deadLettered"}
	for i := range want {
		if code(r.Results[i].Error) != want[i] || r.Results[i].State != states[i] {
			t.Errorf("item %d: %+v, want %s %s", i, r.Results[i], want[i], states[i])
		}
	}
	if r.Checkpoint != 1 {
		t.Errorf("checkpoint %d", r.Checkpoint)
	}
	b.looks(1, 6, "2 3* 4 [5-5] 6*")
}

func TestManyLeasesOfOneReceiveEndOneByOne(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(4)
	d := b.receive(4).Deliveries
	if n := len(b.table(leases.ID)); n != 1 {
		t.Errorf("%d lease rows, want one of the receive", n)
	}
	for i := range d {
		b.ack(d[3-i])
		b.check()
	}
	if n := len(b.table(leases.ID)); n != 0 {
		t.Errorf("%d lease rows are left", n)
	}
}
