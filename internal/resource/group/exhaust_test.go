package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
)

// fail uses up one attempt of the next event.
func (b *bed) fail() api.PositionResult { b.t.Helper(); return b.nack(b.one(), 0) }

// terminal gives an event up at once.
func (b *bed) terminal(d api.GroupDelivery) api.PositionResult {
	b.t.Helper()
	return b.did(api.CompleteItem{Token: d.Token, Action: api.ActionNack, Terminal: true, Failure: "poison"})
}

func TestUsedUpAttemptsMakeADeadLetterAndFinishThePosition(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 3})
	b.fill(2)
	b.fail()
	b.fail()
	b.now += 1
	if r := b.fail(); r.State != api.PositionDead {
		t.Errorf("%+v", r)
	}
	b.looks(1, 1, "")
	dl := b.deadLetters()
	if len(dl) != 1 || dl[0].Position != 1 || dl[0].State != api.PositionDead || dl[0].Attempts != 3 || dl[0].Failures != 3 || dl[0].LastFailure != "did not work" ||
		dl[0].At != api.Time(b.now) || dl[0].Version != 1 || dl[0].Event == nil || dl[0].Event.EventID != "e1" || dl[0].Event.PublishedAt != api.Time(start) {
		t.Fatalf("dead letters %+v", dl)
	}
	b.must(b.purge(1)) // the copy outlives the event
	b.later(10 * 86_400_000)
	if dl := b.deadLetters(); string(dl[0].Event.Payload) != "1" {
		t.Errorf("%+v", dl)
	}
	if s := b.status(); s.Counts.DeadLetters != 1 || s.Counts.DeadLetterBytes <= 0 || s.Totals.DeadLettered != 1 {
		t.Errorf("%+v", s)
	}
	if e := b.explain(1); e.State != api.PositionDead || e.Deliverable {
		t.Errorf("%+v", e)
	}
}

func TestLostLeasesUseUpAttemptsToo(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 2, Retry: api.RetryPolicy{BaseMillis: 1, MaxMillis: 1}})
	b.fill(1)
	b.one()
	b.later(40_000)
	b.one()
	b.later(40_000)
	if dl := b.deadLetters(); len(dl) != 1 || dl[0].LeaseLosses != 2 || dl[0].Failures != 0 {
		t.Errorf("%+v", dl)
	}
	b.looks(1, 1, "")
}

func TestAtTheBoundOfDeadLettersAPositionIsHeld(t *testing.T) {
	for room := int64(1); room <= 3; room++ {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			b := newBed(t, api.GroupPolicy{DeadLetter: api.GroupDeadLetters{MaxEvents: room}})
			b.fill(3)
			for i := range int64(3) {
				want := api.PositionDead
				if i >= room {
					want = api.PositionHeld
				}
				if r := b.terminal(b.one()); r.State != want {
					t.Errorf("dead letter %d of %d: %+v", i+1, room, r)
				}
			}
			if s := b.status(); s.Counts.DeadLetters != room || s.Counts.Held != 3-room || s.State.Checkpoint != uint64(room) {
				t.Errorf("%+v", s.Counts)
			}
		})
	}
}

func TestTheBoundOfDeadLettersInBytesIsExact(t *testing.T) {
	measure := newBed(t, api.GroupPolicy{})
	measure.fill(1)
	measure.terminal(measure.one())
	size := measure.status().Counts.DeadLetterBytes
	for extra, want := range map[int64]api.PositionState{-1: api.PositionHeld, 0: api.PositionDead, 1: api.PositionDead} {
		b := newBed(t, api.GroupPolicy{DeadLetter: api.GroupDeadLetters{MaxBytes: size + extra}})
		b.fill(1)
		if r := b.terminal(b.one()); r.State != want {
			t.Errorf("%d bytes of %d: %+v", size+extra, size, r)
		}
	}
}

func TestHoldKeepsThePositionUntilAPersonActsAndOthersGoOn(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 1, OnExhausted: api.ExhaustedHold, MaxWindow: 3})
	b.fill(5)
	if r := b.fail(); r.State != api.PositionHeld {
		t.Errorf("%+v", r)
	}
	b.ack(b.receive(5).Deliveries...)
	b.looks(0, 3, "1 [2-3]")
	b.later(10 * 86_400_000) // it never comes back by itself
	if r := b.receive(1); r.Reason != api.ReasonParkedHead || r.BlockedBy != 1 {
		t.Errorf("answered %+v", r)
	}
	if e := b.explain(0); e.Position != 1 || e.State != api.PositionHeld || e.Deliverable || !strings.Contains(e.ChangedBy, "subscriptions.skip") {
		t.Errorf("%+v", e)
	}
	before := b.rows()
	wants(t, "discarding a held position", b.discard(1, 0), "Conflict/held")
	b.same("a refused discard", before)
	r, err := b.redrive(1, 0)
	b.must(err)
	if r.State != api.PositionReady {
		t.Errorf("%+v", r)
	}
	d := b.one()
	if d.Event.Position != 1 || d.Attempt != 1 || d.Redriven {
		t.Errorf("%+v", d)
	}
	if r := b.nack(d, 0); r.State != api.PositionHeld {
		t.Errorf("%+v", r)
	}
	b.must(b.skip(1))
	b.looks(3, 3, "")
}

func TestPauseStopsTheGroupAndThePositionIsTriedAnewAfterResume(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 2, OnExhausted: api.ExhaustedPause})
	b.fill(3)
	b.fail()
	r := b.receive(2).Deliveries
	if got := b.nack(r[0], 0); got.State != api.PositionReady {
		t.Errorf("%+v", got)
	}
	s := b.status()
	if !s.State.Paused || s.State.FailureCode != failedAttempts || s.State.FailedPosition != 1 || s.Reason != api.ReasonPaused {
		t.Errorf("%+v", s.State)
	}
	_, err := b.tryReceive(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive", err, "DispatchPaused/group_failed")
	b.ack(r[1]) // what is in flight may finish
	if e := b.explain(1); e.Reason != string(api.ReasonPaused) || e.Deliverable || !strings.Contains(e.Detail, failedAttempts) {
		t.Errorf("%+v", e)
	}
	if got := b.resume(); !got.Changed || got.State.FailureCode != "" || got.State.FailedPosition != 0 {
		t.Errorf("%+v", got)
	}
	if d := b.one(); d.Event.Position != 1 || d.Attempt != 1 {
		t.Errorf("%+v", d)
	}
}

func TestAReceiveThatFindsTheLastAttemptLostDeliversNothingMore(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 1, OnExhausted: api.ExhaustedPause})
	b.fill(3)
	b.one()
	b.now += 31_000 // the due service has not come yet
	r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: 5})
	if err == nil && len(r.Deliveries) != 0 {
		t.Errorf("the group paused itself and %v were delivered", positions(r))
	}
	if s := b.status().State; !s.Paused || s.FailedPosition != 1 {
		t.Errorf("%+v", s)
	}
	_, err = b.tryReceive(api.SubscriptionsReceiveRequest{})
	wants(t, "the next receive", err, "DispatchPaused/group_failed")
}

func TestARedrivenDeadLetterKeepsItsPositionAndLeavesTheCheckpoint(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 1})
	b.fill(4)
	b.fail()
	b.ack(b.receive(2).Deliveries...)
	b.looks(3, 3, "")
	b.must(b.purge(3))
	r, err := b.redrive(1, 1)
	b.must(err)
	if r.State != api.PositionReady || r.InboxExpired {
		t.Errorf("%+v", r)
	}
	b.looks(3, 3, "")
	got := b.receive(2).Deliveries
	if len(got) != 2 || got[0].Event.Position != 1 || !got[0].Redriven || got[0].Attempt != 1 || got[0].Event.EventID != "e1" || got[1].Event.Position != 4 || got[1].Redriven {
		t.Fatalf("%+v", got)
	}
	if s := b.status(); s.Counts.DeadLetters != 1 || s.Counts.Leased != 2 || s.State.Checkpoint != 3 {
		t.Errorf("%+v", s)
	}
	b.restart()
	b.check()
	if r := b.nack(got[0], 0); r.State != api.PositionDead { // its attempts are used up again
		t.Errorf("%+v", r)
	}
	if dl := b.deadLetters(); len(dl) != 1 || dl[0].Redrives != 1 || dl[0].Attempts != 1 || dl[0].Failures != 1 {
		t.Errorf("%+v", dl)
	}
	_, err = b.redrive(1, 0)
	b.must(err)
	d := b.one()
	b.ack(d)
	b.looks(3, 4, "4*")
	if dl := b.deadLetters(); len(dl) != 0 {
		t.Errorf("%+v", dl)
	}
	if s := b.status(); s.Counts.DeadLetterBytes != 0 || s.Totals.Redriven != 2 {
		t.Errorf("%+v", s)
	}
	if late := b.complete(api.CompleteItem{Token: d.Token, Action: api.ActionAck})[0]; code(late.Error) != "NotFound/unknown_delivery" {
		t.Errorf("%+v", late)
	}
}

func TestARedrivenDeadLetterWaitsAndIsRenewedLikeAnyEvent(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 3})
	b.fill(1)
	b.terminal(b.one())
	_, err := b.redrive(1, 0)
	b.must(err)
	d := b.one()
	if r := b.did(api.CompleteItem{Token: d.Token, Action: api.ActionRenew, LeaseSeconds: 60}); r.LeaseUntil != api.Time(b.now+60_000) {
		t.Errorf("%+v", r)
	}
	b.later(60_000) // lost
	if r := b.receive(1); len(r.Deliveries) != 0 || r.Reason != api.ReasonScheduled {
		t.Errorf("%+v", r)
	}
	b.later(1_000)
	b.nack(b.one(), 5_000)
	b.check()
	b.later(5_000)
	b.did(api.CompleteItem{Token: b.one().Token, Action: api.ActionRelease})
	if d := b.one(); d.Attempt != 3 || !d.Redriven {
		t.Errorf("%+v", d)
	}
}

func TestRedriveWarnsWhenTheInboxHasForgotten(t *testing.T) {
	for extra, want := range map[int64]bool{-1: false, 0: true, 1: true} {
		b := newBed(t, api.GroupPolicy{})
		b.fill(1)
		b.terminal(b.one())
		b.later(limits.InboxSeconds*1000 + extra)
		r, err := b.redrive(1, 0)
		b.must(err)
		if r.InboxExpired != want {
			t.Errorf("%d ms after the horizon: %t", extra, r.InboxExpired)
		}
	}
}

func TestRefusalsOfRedriveAndDiscardSayWhatStandsInTheWay(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(3)
	b.terminal(b.one())
	b.one()
	redriven := func(position, version uint64) error { _, err := b.redrive(position, version); return err }
	for name, verb := range map[string]func(position, version uint64) error{"redrive": redriven, "discard": b.discard} {
		before := b.rows()
		wants(t, name+" of a leased position", verb(2, 0), "NotFound/unknown_dead_letter")
		wants(t, name+" of a position that was not issued", verb(3, 0), "NotFound/unknown_dead_letter")
		wants(t, name+" at another version", verb(1, 2), "RevisionConflict/dead_letter_version")
		b.same("a refused "+name, before)
	}
	b.must(redriven(1, 1))
	wants(t, "a second redrive", redriven(1, 2), "Conflict/redriven")
	wants(t, "a discard of what is with the workers", b.discard(1, 0), "Conflict/redriven")
	b.terminal(b.one())
	b.must(b.discard(1, 4))
	wants(t, "a second discard", b.discard(1, 0), "NotFound/unknown_dead_letter")
	if s := b.status(); s.Counts.DeadLetters != 0 || s.Counts.DeadLetterBytes != 0 {
		t.Errorf("%+v", s.Counts)
	}
}

func TestDeadLettersAreListedByPageAndByBytes(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(5)
	for _, d := range b.receive(5).Deliveries {
		b.terminal(d)
	}
	list := func(limit, bytes int64, cursor string) *api.SubscriptionsDeadLettersListResponse {
		r, err := ask(b, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: b.ref("g"), Limit: limit, MaxBytes: bytes, Cursor: cursor})
		b.must(err)
		return r
	}
	size := b.status().Counts.DeadLetterBytes / 5
	for name, c := range map[string]struct{ limit, bytes int64 }{
		"two a page": {2, 1 << 20}, "two fit": {1000, 2*size + size/2}, "one, whatever its size": {1000, 1},
	} {
		var got []uint64
		r, pages := list(c.limit, c.bytes, ""), 0
		for {
			pages++
			for _, dl := range r.DeadLetters {
				got = append(got, dl.Position)
			}
			if r.Cursor == "" {
				break
			}
			r = list(c.limit, c.bytes, r.Cursor)
		}
		if !slices.Equal(got, upTo(1, 5)) || pages != map[string]int{"two a page": 3, "two fit": 3, "one, whatever its size": 5}[name] {
			t.Errorf("%s: %v on %d pages", name, got, pages)
		}
	}
	r, err := ask(b, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: b.ref("g"), WithoutEvents: true})
	b.must(err)
	if len(r.DeadLetters) != 5 || r.DeadLetters[0].Event != nil || r.DeadLetters[0].LastFailure != "poison" {
		t.Errorf("%+v", r)
	}
}

// A redriven dead letter whose attempts a lowered limit has used up goes back to
// the dead letters; the ones behind it are found, if need be by calling again.
func TestALoweredLimitPutsARedrivenDeadLetterAsideAndTheNextIsDelivered(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 5})
	b.fill(3)
	for _, d := range b.receive(3).Deliveries {
		b.terminal(d)
	}
	_, err := b.redrive(1, 0)
	b.must(err)
	b.nack(b.one(), 0)
	b.reconfigure(api.GroupDefinition{Policy: api.GroupPolicy{MaxAttempts: 1}})
	for p := uint64(2); p <= 3; p++ {
		_, err := b.redrive(p, 0)
		b.must(err)
	}
	r := b.receive(1)
	if len(r.Deliveries) == 0 && r.Reason == api.ReasonScanLimit {
		r = b.receive(1)
	}
	if !slices.Equal(positions(r), []uint64{2}) {
		t.Errorf("received %v, %s", positions(r), r.Reason)
	}
	if s := b.status(); s.Counts.DeadLetters != 3 || b.deadLetters()[0].State != api.PositionDead {
		t.Errorf("%+v", s.Counts)
	}
}

// The group was moved back over a position that is among its dead letters.
func TestAPositionThatIsGivenUpAgainReplacesItsDeadLetter(t *testing.T) {
	b := newBed(t, api.GroupPolicy{DeadLetter: api.GroupDeadLetters{MaxEvents: 1}})
	b.fill(2)
	b.terminal(b.one())
	b.seek(1)
	_, err := b.redrive(1, 0)
	b.must(err)
	d := b.receive(2).Deliveries // the dead letter and the event itself
	if len(d) != 2 || d[0].Event.Position != 1 || d[1].Event.Position != 1 || !d[0].Redriven || d[1].Redriven {
		t.Fatalf("%+v", d)
	}
	r := b.complete(
		api.CompleteItem{Token: d[0].Token, Action: api.ActionRenew, LeaseSeconds: 60},
		api.CompleteItem{Token: d[1].Token, Action: api.ActionNack, Terminal: true},
	)
	if r[0].Error != nil || r[1].Error != nil || r[1].State != api.PositionDead {
		t.Fatalf("%+v", r)
	}
	b.check()
	if dl := b.deadLetters(); len(dl) != 1 || dl[0].State != api.PositionDead || dl[0].Redrives != 1 {
		t.Errorf("%+v", dl)
	}
	if late := b.complete(api.CompleteItem{Token: r[0].Token, Action: api.ActionAck})[0]; code(late.Error) != "StaleLease/lease_replaced" {
		t.Errorf("%+v", late)
	}
	b.looks(1, 1, "")
}
