package group

import (
	"reflect"
	"testing"

	"github.com/keyload/keyload/api"
)

// outputs is how many messages wait in the queue "out".
func (b *bed) outputs() int64 {
	b.t.Helper()
	r, err := ask(b, api.QueuesStatus, &api.QueuesStatusRequest{Lane: api.LaneRef{Partition: b.place, Queue: "out"}})
	b.must(err)
	return r.StoredMessages
}

func TestProcessCommitsEffectsRecordAndAcknowledgementTogether(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(3)
	d := b.receive(3).Deliveries
	position := b.m.Head().Position
	r, err := b.process(d[1], "view", output("o1"), api.Mutation{Publish: &api.Publish{Topic: "news", Events: []api.Event{event("derived")}}})
	b.must(err)
	if r.AlreadyProcessed || r.Position != 2 || r.State != api.PositionFinished || r.Checkpoint != 0 || len(r.Results) != 2 || r.Results[1].Position != 4 ||
		r.EffectsToken.Position != position+1 || b.m.Head().Position != position+1 {
		t.Errorf("%+v", r)
	}
	b.looks(0, 3, "1* [2-2] 3*")
	if b.outputs() != 1 {
		t.Errorf("%d outputs", b.outputs())
	}
	r, err = b.process(d[0], "view", output("o2"))
	b.must(err)
	if r.Checkpoint != 2 {
		t.Errorf("%+v", r)
	}
	b.restart()
	b.looks(2, 3, "3*")
	if n := b.check()["inboxRecords"]; n != 2 {
		t.Errorf("%d records", n)
	}
}

func TestProcessOfARedeliveryAcknowledgesItAndRepeatsNothing(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(2)
	d := b.receive(2).Deliveries
	first, err := b.process(d[0], "view", output("o1"))
	b.must(err)
	again, err := b.process(d[0], "view", output("o1")) // its lease is over, its work is known
	b.must(err)
	if !again.AlreadyProcessed || again.EffectsToken != first.EffectsToken || again.Results != nil || again.State != api.PositionFinished || again.Checkpoint != 1 {
		t.Errorf("%+v", again)
	}
	b.seek(1)
	redelivered := b.receive(2).Deliveries
	again, err = b.process(redelivered[0], "view", output("o1"))
	b.must(err)
	if !again.AlreadyProcessed || again.State != api.PositionFinished || again.Checkpoint != 1 || b.outputs() != 1 {
		t.Errorf("%+v, %d outputs", again, b.outputs())
	}
	b.looks(1, 2, "2*")
	b.create("other", api.GroupDefinition{}) // an event that two groups deliver is one input of a scope
	theirs := b.of("other", 1).Deliveries[0]
	r, err := call(b, api.SubscriptionsProcess, &api.SubscriptionsProcessRequest{CommandID: b.id(), Group: b.ref("other"), Token: theirs.Token, HandlerScope: "view", Effects: []api.Mutation{output("o1")}})
	b.must(err)
	if !r.AlreadyProcessed || r.Checkpoint != 1 || b.outputs() != 1 {
		t.Errorf("%+v", r)
	}
}

func TestProcessWithOtherEffectsIsAConflictAndChangesNothing(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(1)
	_, err := b.process(b.one(), "view", output("o1"))
	b.must(err)
	b.seek(1)
	d := b.one()
	before := b.rows()
	_, err = b.process(d, "view", output("o2"))
	wants(t, "other effects", err, "Conflict/processed_differently")
	b.same("a conflict", before)
	_, err = b.process(d, "another scope", output("o2"))
	b.must(err)
}

func TestARefusedEffectLeavesTheDeliveryLeased(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(1)
	d := b.one()
	b.must(b.commit(output("taken")))
	before := b.rows()
	_, err := b.process(d, "view", output("o1"), output("taken"))
	wants(t, "an effect that is refused", err, "Conflict/message_exists")
	if facts(err)["effect"] != "1" {
		t.Errorf("facts %v", facts(err))
	}
	b.same("a refused effect", before)
	b.ack(d)
}

func TestAStaleProcessCommitsNothing(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 2})
	b.fill(1)
	d := b.one()
	b.now += 30_000
	before := b.rows()
	_, err := b.process(d, "view", output("o1"))
	wants(t, "process at the deadline", err, "LeaseExpired/lease_expired")
	b.same("process at the deadline", before)
	b.tick()
	before = b.rows()
	_, err = b.process(d, "view", output("o1"))
	wants(t, "process after the lease was lost", err, "StaleLease/lease_replaced")
	b.same("process after the lease was lost", before)
	b.later(1_000)
	second := b.one()
	_, err = b.process(second, "view", output("o1"))
	b.must(err)
	late, err := b.process(d, "view", output("o1")) // the first worker learns that the work is done
	b.must(err)
	if !late.AlreadyProcessed || late.State != api.PositionFinished || b.outputs() != 1 {
		t.Errorf("%+v", late)
	}
}

func TestProcessOfADeadLetterTakesItOutOfThem(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(1)
	b.terminal(b.one())
	_, err := b.redrive(1, 0)
	b.must(err)
	r, err := b.process(b.one(), "view", output("o1"))
	b.must(err)
	if r.Position != 1 || r.State != api.PositionFinished || r.Checkpoint != 1 || len(b.deadLetters()) != 0 || b.outputs() != 1 {
		t.Errorf("%+v", r)
	}
}

func TestAProcessThatIsRepeatedUnderItsIDAnswersItsReceipt(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(1)
	req := &api.SubscriptionsProcessRequest{CommandID: b.id(), Group: b.ref("g"), Token: b.one().Token, HandlerScope: "view", Effects: []api.Mutation{output("o1")}}
	first, err := call(b, api.SubscriptionsProcess, req)
	b.must(err)
	before := b.rows()
	b.restart()
	again, err := call(b, api.SubscriptionsProcess, req)
	b.must(err)
	if !b.replayed || !reflect.DeepEqual(first, again) {
		t.Errorf("%+v, want %+v", again, first)
	}
	b.same("a repeat", before)
}

// The acknowledgement comes before the effects: what it frees can be used by them.
func TestAnEffectMayPurgeWhatItsOwnAcknowledgementReleases(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(2)
	d := b.receive(2).Deliveries
	purge := func(through uint64) api.Mutation {
		return api.Mutation{PurgeTopic: &api.PurgeTopic{Topic: "news", ThroughPosition: through}}
	}
	before := b.rows()
	_, err := b.process(d[1], "view", purge(1))
	wants(t, "a purge of what is unfinished", err, "ResourceExhausted/retention_pin")
	b.same("a refused purge", before)
	_, err = b.process(d[0], "view", purge(1))
	b.must(err)
}
