package group

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
)

// Tests named after the field cases they answer. 002 is in widest_test.go, 007 in
// check_test.go.

func TestCase001_EveryAckOfAFullWindowSurvivesAndOnlyTheHeadComesBack(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxWindow: 8})
	b.fill(40)
	d := b.receive(8).Deliveries
	for _, i := range []int{4, 2, 7, 1, 5, 3, 6} {
		b.ack(d[i])
	}
	r := b.receive(8)
	if s := b.status(); len(r.Deliveries) != 0 || r.Reason != api.ReasonWindowFull || r.BlockedBy != 1 || s.Reason != api.ReasonWindowFull || s.BlockedBy != 1 {
		t.Errorf("answered %+v", r)
	}
	b.restart()
	b.later(31_000)
	b.later(1_000)
	r = b.receive(8)
	if !slices.Equal(positions(r), []uint64{1}) {
		t.Fatalf("received %v", positions(r))
	}
	b.ack(r.Deliveries...)
	b.looks(8, 8, "")
}

func TestCase006_AnAckThatWasLostIsADeliveryAfterTheLease(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(100)
	d := b.receive(100).Deliveries
	b.ack(slices.Concat(d[:2], d[3:])...)
	if o := b.status().OldestUnfinished; o == nil || o.From != 3 || o.EventID != "e3" {
		t.Errorf("status names %+v", o)
	}
	b.later(31_000)
	again := b.one()
	if again.Event.Position != 3 || again.Attempt != 2 {
		t.Errorf("delivered %d", again.Event.Position)
	}
	b.ack(again)
	b.looks(100, 100, "")
	b.must(b.purge(100))
}

func TestCase009_TheLastAckOfAQuietTopicIsDurableAtOnce(t *testing.T) {
	b := emptyBed(t, crashable(), true)
	b.create("g", api.GroupDefinition{})
	b.fill(3)
	b.ack(b.receive(3).Deliveries...)
	b.crash(0, 1)
	if s := b.status(); s.Lag != 0 || s.State.Checkpoint != 3 {
		t.Errorf("%+v", s.State)
	}
}

func TestCase017_AGroupNeverExpiresAndAnAbsentOneNeverStarts(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(12)
	b.ack(b.receive(10).Deliveries...)
	b.later(400 * 86_400_000)
	b.restart()
	if d := b.one(); d.Event.Position != 11 {
		t.Errorf("delivered %d", d.Event.Position)
	}
	b.must(b.delete("g", 10))
	_, err := b.tryReceive(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive of a deleted group", err, "NotFound/unknown_group")
}

func TestCase019_LostHistoryIsSaidAndTheOperatorChoosesWhereToGoOn(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(30)
	b.ack(b.receive(5).Deliveries...)
	b.broken = true
	b.lose(19) // no purge would: a fault of the store
	_, err := b.tryReceive(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive", err, "HistoryUnavailable/purged")
	if facts(err)["firstAvailable"] != "20" {
		t.Errorf("facts %v", facts(err))
	}
	b.seek(20)
	if got := positions(b.receive(30)); !slices.Equal(got, upTo(20, 30)) {
		t.Errorf("received %v", got)
	}
	b.broken = false
}

func TestCase022_StatusTellsOneStuckPositionFromABacklog(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 3})
	b.fill(50)
	for _, d := range b.receive(50).Deliveries {
		if d.Event.Position != 7 {
			b.ack(d)
			continue
		}
		b.nack(d, 1_000)
	}
	b.now += 500
	s := b.status()
	if o := s.OldestUnfinished; s.State.Checkpoint != 6 || s.CompletedAhead != 43 || s.Counts.Rows != 2 || o == nil || o.From != 7 || o.Attempts != 1 || o.Failures != 1 ||
		o.State != api.PositionWaiting || o.AgeMillis != 500 || o.LastFailure != "did not work" {
		t.Errorf("%+v, %+v", s.State, s.OldestUnfinished)
	}
	for range 2 {
		b.later(1_000)
		b.nack(b.one(), 1_000)
	}
	b.looks(50, 50, "")
	if dl := b.deadLetters(); len(dl) != 1 || dl[0].Position != 7 || dl[0].Attempts != 3 {
		t.Errorf("%+v", dl)
	}
}

func TestCase024_RetriesThatWaitTakeNoLeaseFromHealthyEvents(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxInFlight: 50, MaxWindow: 2_000, MaxAttempts: 1_000})
	b.fill(1_100) // the first 100 are poison
	good := 0
	for good < 1_000 {
		r := b.receive(50)
		if len(r.Deliveries) == 0 {
			t.Fatalf("healthy events starve: %s", r.Reason)
		}
		for _, d := range r.Deliveries {
			if d.Event.Position <= 100 {
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
	if s := b.status(); s.Counts.Waiting != 100 || s.Counts.Runs != 1 || s.State.Issued != 1_100 {
		t.Errorf("%+v", s.Counts)
	}
}

func TestCase026_ANarrowedFilterLeavesNothingThatNobodyCanFinish(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.create("other", api.GroupDefinition{})
	b.kinds(20, "a", "b", "b", "b")
	b.ack(b.receive(3).Deliveries...)
	b.reconfigure(typed("a"))
	r := b.receive(20)
	if !slices.Equal(positions(r), []uint64{5, 9, 13, 17}) {
		t.Errorf("received %v", positions(r))
	}
	b.ack(r.Deliveries...)
	b.looks(20, 20, "")
	wants(t, "a purge before the other group is done", b.purge(20), "ResourceExhausted/retention_pin")
	b.finish("other", api.ActionAck, b.of("other", 20).Deliveries...)
	b.must(b.purge(20))
}

// The waiting call is woken by the pause and asks again; what it may be told then
// is here, that it ends is shown where calls wait.
func TestCase027_AWaitingReceiveIsWokenAndGetsNothingOfTheNewFilter(t *testing.T) {
	b := emptyBedOf(t)
	b.create("g", typed("a"))
	b.kinds(2, "a", "b")
	old := b.one()
	waiting := api.SubscriptionsReceiveRequest{WaitMillis: 20_000, ExpectedGeneration: 1}
	if r, err := b.cheap(waiting); err != nil || r != nil && len(r.Deliveries) > 0 {
		t.Fatalf("%+v %v", r, err)
	}
	if b.pause(); b.woken() != everyone {
		t.Error("a pause does not wake who waits")
	}
	_, err := b.tryReceive(waiting)
	wants(t, "the waiting call after the pause", err, "DispatchPaused/group_paused")
	_, err = b.configure("g", typed("b"), 1)
	b.must(err)
	if b.woken() != everyone {
		t.Error("an update does not wake who waits")
	}
	b.resume()
	_, err = b.tryReceive(waiting)
	wants(t, "the waiting call after the update", err, "RevisionConflict/group_generation")
	b.refuses("a token of the old filter", old.Token, "TokenInvalidated/generation_changed")
	if d := b.one(); d.Event.Type != "b" {
		t.Errorf("delivered %s", d.Event.Type)
	}
}

func TestCase036_AnEventGivenUpFillsItsGapInTheSameCommand(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 2})
	b.fill(3)
	d := b.receive(3).Deliveries
	b.ack(d[1:]...)
	b.nack(d[0], 0)
	d[0] = b.one()
	position := b.m.Head().Position
	b.nack(d[0], 0)
	if b.m.Head().Position != position+1 {
		t.Error("it took more than one command")
	}
	b.looks(3, 3, "")
	b.must(b.purge(3))
	if n := len(b.table(leases.ID)) + len(b.table(readies.ID)) + len(b.table(rows.ID)); n != 0 {
		t.Errorf("%d rows are left of the redeliveries", n)
	}
}

func TestCase039_ARaisedLimitHoldsForTheNextReceive(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxInFlight: 4, MaxWindow: 4})
	b.fill(20)
	b.receive(8)
	b.later(31_000)
	b.later(1_000)
	b.receive(8)
	b.reconfigure(api.GroupDefinition{Policy: api.GroupPolicy{MaxInFlight: 8, MaxWindow: 8}})
	if got := positions(b.receive(8)); !slices.Equal(got, upTo(1, 8)) {
		t.Errorf("received %v", got)
	}
}

func TestCase066_TheCheckpointIsBelowEverythingUnfinishedWhateverItsState(t *testing.T) {
	b := emptyBed(t, crashable(), true)
	b.create("g", api.GroupDefinition{Policy: api.GroupPolicy{MaxAttempts: 2, OnExhausted: api.ExhaustedHold}})
	b.fill(10)
	d := b.receive(10).Deliveries
	b.ack(d[5:]...)
	b.terminal(d[0]) // held
	b.nack(d[1], 0)  // ready
	b.nack(d[2], 50_000)
	b.looks(0, 10, "1 2 3 4* 5* [6-10]")
	b.later(30_000) // 4 and 5 are lost
	b.crash(0, 1)
	b.looks(0, 10, "1 2 3 4 5 [6-10]")
	b.must(second(b.redrive(1, 0)))
	b.later(30_000)
	r := b.receive(10)
	if !slices.Equal(positions(r), upTo(1, 5)) {
		t.Errorf("received %v", positions(r))
	}
	b.ack(r.Deliveries...)
	b.looks(10, 10, "")
}

func TestCase067_ARedriveMovesNoCheckpointAndIsNotLostOnTheWay(t *testing.T) {
	b := emptyBed(t, crashable(), true)
	b.create("g", api.GroupDefinition{})
	b.fill(1_000)
	for b.status().State.Issued < 1_000 {
		for _, d := range b.receive(256).Deliveries {
			if d.Event.Position == 7 {
				b.terminal(d)
			} else {
				b.ack(d)
			}
		}
	}
	b.looks(1_000, 1_000, "")
	b.must(second(b.redrive(7, 0)))
	d := b.one()
	b.crash(0, 1)
	b.looks(1_000, 1_000, "")
	if dl := b.deadLetters(); len(dl) != 1 || dl[0].Position != 7 || dl[0].State != api.PositionLeased {
		t.Errorf("%+v", dl)
	}
	b.ack(d)
	if b.looks(1_000, 1_000, ""); len(b.deadLetters()) != 0 {
		t.Error("the dead letter is still there")
	}
}

func TestCase069_ADefinitionChangesAsAWholeAndWhatIsInForceCanBeRead(t *testing.T) {
	b := emptyBedOf(t)
	full := api.GroupDefinition{Filter: api.GroupFilter{EventTypes: []string{"a"}, Headers: map[string][]string{"h": {"1"}}}, Policy: api.GroupPolicy{MaxLeaseSeconds: 10}}
	b.create("g", full)
	b.fill(3)
	_, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: 3, LeaseSeconds: 10})
	b.must(err)
	before := b.rows()
	_, err = b.configure("g", api.GroupDefinition{Policy: api.GroupPolicy{MaxLeaseSeconds: 20}}, 0)
	wants(t, "a part of a definition", err, "Conflict/group_exists")
	b.same("a refused part", before)
	b.pause()
	checkpoint := b.status().State.Checkpoint
	full.Policy.MaxLeaseSeconds = 20
	r, err := b.configure("g", full, 1)
	b.must(err)
	got := b.status()
	if r.State.Generation != 2 || r.State.Checkpoint != checkpoint || got.Definition.Policy.MaxLeaseSeconds != 20 ||
		!slices.Equal(got.Definition.Filter.EventTypes, []string{"a"}) || !slices.Equal(got.Definition.Filter.Headers["h"], []string{"1"}) {
		t.Errorf("%+v, in force %+v", r.State, got.Definition)
	}
}

// A purge never passes a checkpoint; TestAPurgeGoesUpToTheLowestCheckpoint… has
// its bounds. Where a store lost events all the same, see 019: here the whole
// window lies in the hole.
func TestCase071_AHoleIsNeverAnEmptyAnswer(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(10)
	b.receive(4)
	wants(t, "a purge beyond the checkpoint", b.purge(1), "ResourceExhausted/retention_pin")
	b.broken = true
	b.lose(10)
	_, err := b.tryReceive(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive", err, "HistoryUnavailable/purged")
	if r, err := b.cheap(api.SubscriptionsReceiveRequest{}); r != nil {
		t.Errorf("an empty answer: %+v %v", r, err)
	}
	b.later(60_000) // its leases end and nothing stops
	_, err = b.tryReceive(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive after the leases", err, "HistoryUnavailable/purged")
	b.must(second(b.trySeek(api.SubscriptionsSeekRequest{To: api.SeekBeginning})))
	b.resume()
	b.fill(1)
	if d := b.one(); d.Event.Position != 11 {
		t.Errorf("delivered %d", d.Event.Position)
	}
	b.broken = false
}

func TestCase102_EventsOfOneCommandAreFinishedOneByOne(t *testing.T) {
	b := emptyBed(t, crashable(), true)
	b.create("g", api.GroupDefinition{})
	b.fill(100) // one command
	b.ack(b.receive(100).Deliveries[0])
	b.crash(0, 1)
	b.later(31_000)
	b.later(1_000)
	if got := positions(b.receive(100)); !slices.Equal(got, upTo(2, 100)) {
		t.Errorf("received %v", got)
	}
}

// The lease begins with the commit and its deadline is in the answer, so a worker
// drops a delivery that came too late; an ack of it is refused and the loss counts
// once.
func TestCase107_ADeliveryThatCameTooLateIsALostLeaseAndNoMore(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(1)
	r, err := b.tryReceive(api.SubscriptionsReceiveRequest{LeaseSeconds: 1})
	b.must(err)
	d := r.Deliveries[0]
	if int64(d.LeaseUntil) != int64(r.Receipt.CommittedAt)+1_000 {
		t.Errorf("leased until %s, committed at %s", d.LeaseUntil, r.Receipt.CommittedAt)
	}
	b.later(5_000)
	if out := b.complete(api.CompleteItem{Token: d.Token, Action: api.ActionAck})[0]; code(out.Error) != "StaleLease/lease_replaced" {
		t.Errorf("%+v", out)
	}
	if row := b.row(1); row.LeaseLosses != 1 || row.Failures != 0 || row.Attempts != 1 {
		t.Errorf("%+v", row)
	}
}

func TestCase111_ThePositionIsTheGroupsAndNoWorkersOwn(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(200)
	session := func(id string, n int64) []api.GroupDelivery {
		r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: n, SessionID: id})
		b.must(err)
		return r.Deliveries
	}
	b.ack(session("A", 5)...)
	if d := session("B", 1); d[0].Event.Position != 6 {
		t.Errorf("the second worker begins at %d", d[0].Event.Position)
	} else {
		b.ack(d...)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 { // five workers, each killed with what it holds
		before := b.status().State.Checkpoint
		for _, w := range rng.Perm(5) {
			d := session(string(rune('a'+w)), 2)
			if len(d) > 0 && rng.IntN(2) == 0 {
				b.ack(d[0])
			}
		}
		b.restart()
		b.later(40_000)
		b.ack(session("next", 2)...)
		if s := b.status().State; s.Checkpoint <= before {
			t.Fatalf("no progress past %d", before)
		}
	}
}
