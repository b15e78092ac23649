package queue

import (
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
)

func TestALeaseThatRanOutCountsTheAttemptAndWaitsAsThePolicySays(t *testing.T) {
	for _, sweep := range []string{"receive", "tick"} {
		t.Run(sweep, func(t *testing.T) {
			b := newBed(t, api.QueuePolicy{Retry: api.RetryPolicy{BaseMillis: 1_000, Factor: 3, MaxMillis: 5_000}})
			b.enqueue(msg("a"))
			for n, wait := range []int64{1_000, 3_000, 5_000, 5_000} {
				d := b.one()
				if d.Attempt != int64(n+1) {
					t.Errorf("attempt %d, want %d", d.Attempt, n+1)
				}
				b.now += 30_000
				if sweep == "tick" {
					b.tick()
				} else if r := b.receive(1); r.Examined.Expired != 1 || r.Reason != api.ReasonScheduled || int64(r.NextDueAt) != b.now+wait {
					t.Fatalf("receive after the lease: %+v", r)
				}
				i := b.inspect("a")
				if i.State != api.StateScheduled || int64(i.NotBefore) != b.now+wait || i.LeaseLosses != int64(n+1) || i.Failures != 0 || i.LeaseOwner != "" {
					t.Errorf("after loss %d: %+v", n+1, i)
				}
				b.now += wait
			}
			b.one()
			b.later(30_000)
			if i := b.inspect("a"); i.State != api.StateDeadLettered || i.Attempts != 5 {
				t.Errorf("after the last attempt: %+v", i)
			}
		})
	}
}

func TestTheWaitAfterALostLeaseCountsFromItsDeadline(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue(msg("a"))
	b.one()
	b.now += 60_000 // nothing swept for long: the wait is over already
	if d := b.one(); d.Attempt != 2 {
		t.Errorf("attempt %d", d.Attempt)
	}
}

func TestJitterIsDrawnBetweenNothingAndTheWholeWait(t *testing.T) {
	b := newBed(t, api.QueuePolicy{Retry: api.RetryPolicy{BaseMillis: 10, MaxMillis: 10, Jitter: api.JitterFull}, MaxAttempts: 1_000})
	b.enqueue(msg("a"))
	seen := map[int64]bool{}
	for range 300 {
		r := b.nack(b.one(), -1)
		wait := int64(0)
		if r.State == api.StateScheduled {
			wait = int64(r.NotBefore) - b.now
		}
		if wait < 0 || wait > 10 {
			t.Fatalf("waits %d", wait)
		}
		seen[wait] = true
		b.later(10)
	}
	if len(seen) < 9 {
		t.Errorf("only %d different waits of 0..10", len(seen))
	}
}

func TestANackWithADelayWaitsExactlyThatLong(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue(msg("a"), msg("b"))
	r := b.nack(b.one(), 2_500)
	if r.State != api.StateScheduled || r.NotBefore != api.Time(start+2_500) || r.Error != nil {
		t.Errorf("nack: %+v", r)
	}
	if i := b.inspect("a"); i.LastFailure != "it did not work" || i.Failures != 1 {
		t.Errorf("inspect: %+v", i)
	}
	if r := b.nack(b.one(), 0); r.State != api.StateReady || r.NotBefore != 0 {
		t.Errorf("nack without delay: %+v", r)
	}
	b.now += 2_500
	if got := ids(b.receive(5)); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("received %v", got)
	}
}

func TestAReleasedMessageKeepsItsPlaceAndItsAttempts(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 1})
	b.enqueue(msg("a"), msg("b"), msg("c"))
	ds := b.receive(2).Deliveries
	r := b.complete(api.CompleteItem{Token: ds[0].Token, Action: api.ActionRelease})[0]
	if r.State != api.StateReady || r.Error != nil {
		t.Errorf("release: %+v", r)
	}
	got := b.receive(3).Deliveries
	if len(got) != 2 || got[0].MessageID != "a" || got[0].Attempt != 1 || got[1].MessageID != "c" {
		t.Errorf("received %+v", got)
	}
	if r := b.ack(ds[0])[0]; code(r.Error) != "StaleLease/lease_replaced" {
		t.Errorf("the old lease still holds: %v", code(r.Error))
	}
}

func TestARenewalMovesTheDeadlineUpToTheOldestALeaseMayGet(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxLeaseSeconds: 60, MaxLeaseAgeSeconds: 100})
	b.enqueue(msg("a"))
	d := b.one()
	renew := func(seconds int64) api.CompleteResult {
		t.Helper()
		return b.complete(api.CompleteItem{Token: d.Token, Action: api.ActionRenew, LeaseSeconds: seconds})[0]
	}
	if r := renew(61); code(r.Error) != "Validation/invalid_field" || r.Error.Facts["limit"] != "maxLeaseSeconds" {
		t.Errorf("a renewal above the policy: %+v", r.Error)
	}
	b.now += 20_000
	r := renew(60)
	if r.Error != nil || r.LeaseUntil != api.Time(start+80_000) || r.Token == d.Token || r.State != api.StateLeased {
		t.Fatalf("renewal: %+v", r)
	}
	if x := b.ack(d)[0]; code(x.Error) != "StaleLease/lease_replaced" {
		t.Errorf("the token before the renewal: %v", code(x.Error))
	}
	d.Token = r.Token
	b.now += 50_000
	if r = renew(60); r.Error != nil || r.LeaseUntil != api.Time(start+100_000) {
		t.Errorf("renewal to the age limit: %+v", r)
	}
	d.Token = r.Token
	if r = renew(60); code(r.Error) != "ResourceExhausted/lease_age_limit" {
		t.Errorf("renewal beyond the age limit: %+v", r)
	}
	if r = renew(5); r.Error != nil || r.LeaseUntil != api.Time(b.now+5_000) {
		t.Errorf("a shorter renewal within the age: %+v", r)
	}
	d.Token = r.Token
	if x := b.ack(d)[0]; x.Error != nil {
		t.Errorf("ack: %v", x.Error)
	}
}

func TestRenewalsOfOneCommandShareARowAndCanBePartlyFinished(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(6)
	ds := b.receive(6).Deliveries
	items := make([]api.CompleteItem, 6)
	for i, d := range ds {
		items[i] = api.CompleteItem{Token: d.Token, Action: api.ActionRenew, LeaseSeconds: 100 + 50*int64(i%2)}
	}
	b.now += 1_000
	for i, r := range b.complete(items...) {
		if r.Error != nil {
			t.Fatalf("renewal %d: %v", i, r.Error)
		}
		ds[i].Token = r.Token
	}
	b.check()
	b.ack(ds[0])
	b.check()
	b.ack(ds[2], ds[1])
	b.later(100_000) // ds[4] is lost, ds[3] and ds[5] have 50 s left
	s := b.status()
	if s.Counts.Leased != 2 || s.Counts.Acked != 3 || s.Counts.Scheduled != 1 || s.Totals.LeasesLost != 1 {
		t.Errorf("status: %+v", s)
	}
	b.ack(ds[3], ds[5])
}

func TestALeaseIsOverExactlyAtItsDeadline(t *testing.T) {
	for _, c := range []struct {
		after int64
		want  string
	}{{29_999, ""}, {30_000, "LeaseExpired/lease_expired"}, {30_001, "LeaseExpired/lease_expired"}} {
		b := newBed(t, api.QueuePolicy{})
		b.enqueue(msg("a"))
		d := b.one()
		b.now += c.after
		if r := b.ack(d)[0]; code(r.Error) != c.want {
			t.Errorf("after %d ms: %v", c.after, code(r.Error))
		}
	}
}

func TestEachItemOfACompleteHasItsOwnOutcome(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(5)
	ds := b.receive(4).Deliveries
	r := b.complete(
		api.CompleteItem{Token: ds[0].Token, Action: api.ActionAck},
		api.CompleteItem{Token: "nonsense", Action: api.ActionAck},
		api.CompleteItem{Token: ds[0].Token, Action: api.ActionAck},
		api.CompleteItem{Token: ds[1].Token, Action: api.ActionRenew},
		api.CompleteItem{Token: ds[1].Token, Action: api.ActionAck},
		api.CompleteItem{Token: ds[2].Token, Action: api.ActionNack, Terminal: true, Failure: "no"},
		api.CompleteItem{Token: ds[3].Token, Action: api.ActionRelease},
	)
	want := []string{"", "Validation/bad_token", "StaleLease/lease_replaced", "", "StaleLease/lease_replaced", "", ""}
	for i, x := range r {
		if got := code(x.Error); got != want[i] {
			t.Errorf("item %d: %s, want %s", i, got, want[i])
		}
	}
	s := b.status()
	if s.Counts.Acked != 1 || s.Counts.Leased != 1 || s.Counts.DeadLettered != 1 || s.Counts.Ready != 2 {
		t.Errorf("status: %+v", s.Counts)
	}
}

func TestAWorkerThatWaitsForRoomInFlightIsWokenByAnAck(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightMessages: 2})
	b.fill(5)
	ds := b.receive(10).Deliveries
	if len(ds) != 2 {
		t.Fatalf("received %d with a limit of 2", len(ds))
	}
	b.ack(ds[0])
	if b.hints[wakeKey(b.owner())] != 1 {
		t.Errorf("hints: %v", b.hints)
	}
}
