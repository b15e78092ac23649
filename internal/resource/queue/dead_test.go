package queue

import (
	"testing"

	"github.com/keyload/keyload/api"
)

// kill makes dead letters of the messages, one by one.
func (b *bed) kill(n int) {
	b.t.Helper()
	for _, d := range b.receive(int64(n)).Deliveries {
		if r := b.complete(api.CompleteItem{Token: d.Token, Action: api.ActionNack, Terminal: true}); r[0].Error != nil {
			b.t.Fatalf("terminal nack: %v", r[0].Error)
		}
	}
}

func TestAMessageOutOfAttemptsBecomesADeadLetterAtTheFailingNack(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 2})
	b.enqueue(msg("a"))
	if r := b.nack(b.one(), 0); r.State != api.StateReady {
		t.Errorf("first nack: %+v", r)
	}
	if r := b.nack(b.one(), 0); r.State != api.StateDeadLettered {
		t.Errorf("second nack: %+v", r)
	}
	if i := b.inspect("a"); string(i.Payload) != `"payload of a"` || i.StoredBytes == 0 || i.FinishedAt == 0 {
		t.Errorf("a dead letter keeps its content: %+v", i)
	}
	b.later(400 * 86_400_000)
	if b.state("a") != api.StateDeadLettered {
		t.Errorf("a dead letter is gone after a year")
	}
}

func TestADeadLetterWithoutRoomWaitsAndIsAdmittedWhenRoomAppears(t *testing.T) {
	b := newBed(t, api.QueuePolicy{DeadLetter: api.DeadLetterPolicy{MaxMessages: 2}})
	b.fill(5)
	b.kill(5)
	s := b.status()
	if s.Counts.DeadLettered != 2 || s.Counts.PendingDeadLetter != 3 || s.StoredMessages != 5 || s.Totals.DeadLettered != 5 {
		t.Fatalf("status: %+v", s)
	}
	b.must(b.cancel("m0000001"))
	if _, err := b.redrive("m0000002"); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]api.MessageState{
		"m0000001": api.StateCancelled, "m0000002": api.StateReady, "m0000003": api.StateDeadLettered,
		"m0000004": api.StateDeadLettered, "m0000005": api.StatePendingDeadLetter,
	} {
		if got := b.state(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	p := b.policy()
	p.DeadLetter.MaxMessages = 10
	b.configure("work", p, func(*api.Resource) {})
	b.receive(1)
	if b.state("m0000005") != api.StateDeadLettered {
		t.Errorf("room by a raised limit was not used")
	}
}

func TestRoomForDeadLettersIsUsedToTheByte(t *testing.T) {
	probe := newBed(t, api.QueuePolicy{})
	probe.fill(1)
	one := probe.status().StoredBytes
	for _, c := range []struct {
		room int64
		dead int64
	}{{2*one - 1, 1}, {2 * one, 2}, {2*one + 1, 2}} {
		b := newBed(t, api.QueuePolicy{DeadLetter: api.DeadLetterPolicy{MaxBytes: c.room}})
		b.fill(3)
		b.kill(3)
		if s := b.status(); s.Counts.DeadLettered != c.dead || s.DeadLetterBytes != c.dead*one || s.Counts.PendingDeadLetter != 3-c.dead {
			t.Errorf("room for %d bytes: %+v", c.room, s)
		}
	}
}

func TestARedriveGivesANewGenerationWithItsAttemptsAtZero(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 1})
	b.enqueue(msg("a"))
	old := b.one()
	if r := b.nack(old, 0); r.State != api.StateDeadLettered {
		t.Fatalf("nack: %+v", r)
	}
	r, err := b.redrive("a")
	if err != nil || r.State != api.StateReady || r.DeliveryGeneration != 2 {
		t.Fatalf("redrive: %+v %v", r, err)
	}
	if _, err := b.redrive("a"); code(err) != "Conflict/wrong_state" {
		t.Errorf("a second redrive: %v", err)
	}
	d := b.one()
	if d.Attempt != 1 || d.DeliveryGeneration != 2 {
		t.Errorf("delivery: %+v", d)
	}
	if x := b.ack(old)[0]; code(x.Error) != "StaleLease/lease_replaced" {
		t.Errorf("the old generation's token: %v", code(x.Error))
	}
	if x := b.ack(d)[0]; x.Error != nil {
		t.Errorf("ack: %v", x.Error)
	}
}

func TestARedriveWarnsOnceTheMessageIsOlderThanInboxRecordsAreKept(t *testing.T) {
	for age, want := range map[int64]bool{0: false, 30*86_400_000 - 1: false, 30 * 86_400_000: true, 30*86_400_000 + 1: true} {
		b := newBed(t, api.QueuePolicy{})
		b.enqueue(msg("a"), msg("b"))
		b.kill(2)
		b.later(age)
		r, err := b.redrive("a")
		b.must(err)
		m, err := b.commit(api.Mutation{RedriveMessage: &api.RedriveMessage{
			Queue: "work", MessageID: "b", ExpectedStateVersion: b.inspect("b").StateVersion, ExpectedDeliveryGeneration: 1,
		}})
		b.must(err)
		if r.InboxExpired != want || m[0].InboxExpired != want {
			t.Errorf("%d ms old: %v and %v, want %v", age, r.InboxExpired, m[0].InboxExpired, want)
		}
	}
}

func TestARedriveOfAnExpiredDeadLetterIsRefused(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	m := msg("a")
	m.ExpiresAt = api.Time(start + 60_000)
	b.enqueue(m)
	b.kill(1)
	_, err := call(b, api.QueuesRedrive, &api.QueuesRedriveRequest{CommandID: b.id(), Lane: b.lane(), MessageID: "a", NotBefore: api.Time(start + 60_000)})
	if code(err) != "Validation/invalid_field" {
		t.Errorf("redrive to the expiry: %v", err)
	}
	b.later(60_000)
	if _, err := b.redrive("a"); code(err) != "Conflict/wrong_state" {
		t.Errorf("redrive after the expiry: %v", err)
	}
}

func TestCancelAndRescheduleCompareExactVersions(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue(msg("a"))
	for _, c := range []struct {
		version, generation uint64
		want                string
	}{{2, 1, "RevisionConflict/message_changed"}, {1, 2, "RevisionConflict/message_changed"}, {1, 1, ""}} {
		_, err := b.commit(api.Mutation{RescheduleMessage: &api.RescheduleMessage{
			Queue: "work", MessageID: "a", ExpectedStateVersion: c.version, ExpectedDeliveryGeneration: c.generation, NotBefore: api.Time(start + 500),
		}})
		if code(err) != c.want {
			t.Errorf("reschedule at %d/%d: %v", c.version, c.generation, err)
		}
	}
	if b.state("a") != api.StateScheduled {
		t.Errorf("a is %s", b.state("a"))
	}
	b.must(b.reschedule("a", start-1))
	d := b.one()
	if err := b.reschedule("a", start); code(err) != "Conflict/wrong_state" {
		t.Errorf("reschedule of a leased message: %v", err)
	}
	b.must(b.cancel("a"))
	if r := b.ack(d)[0]; code(r.Error) != "StaleLease/lease_replaced" {
		t.Errorf("ack of a cancelled message: %v", code(r.Error))
	}
	if err := b.cancel("a"); code(err) != "Conflict/wrong_state" {
		t.Errorf("cancel of a cancelled message: %v", err)
	}
}

func TestEveryUnfinishedStateCanBeCancelled(t *testing.T) {
	b := newBed(t, api.QueuePolicy{DeadLetter: api.DeadLetterPolicy{MaxMessages: 1}})
	later := msg("scheduled")
	later.NotBefore, later.ExpiresAt = api.Time(start+1_000), api.Time(start+2_000)
	b.enqueue(msg("dead"), msg("pending"), msg("leased"))
	b.kill(2)
	b.one()
	b.enqueue(msg("ready"), later)
	list := []string{"scheduled", "ready", "leased", "pending", "dead"}
	for _, id := range list {
		if err := b.cancel(id); err != nil {
			t.Errorf("cancel %s: %v", id, err)
		}
		b.check()
	}
	if s := b.status(); s.Counts.Cancelled != 5 || s.StoredMessages != 0 || s.StoredBytes != 0 || s.DeadLetterBytes != 0 || s.InFlightBytes != 0 {
		t.Errorf("status: %+v", s)
	}
}
