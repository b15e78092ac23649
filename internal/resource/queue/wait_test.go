package queue

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
)

func TestAnEmptyReceiveWaitsForItsLaneUntilTheNextInstant(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	h, _ := b.registry.Handler(api.QueuesReceive.Name)
	req := &api.QueuesReceiveRequest{Lane: b.lane(), WaitMillis: 5_000}
	if h.WaitMillis(req) != 5_000 {
		t.Errorf("waits %d", h.WaitMillis(req))
	}
	snap := b.store.NewSnapshot()
	defer snap.Close()
	v := &op.View{Scope: b.scope(snap)}
	keys, class, err := h.WaitKeys(v, req)
	if err != nil || len(keys) != 2 || keys[0] != wakeKey(b.owner()) || keys[1] != queueKey(b.owner()) || class != keys[0] {
		t.Errorf("waits for %q as %q, %v", keys, class, err)
	}
	req.Lane.Queue = "none"
	if _, _, err := h.WaitKeys(v, req); code(err) != "NotFound/unknown_resource" {
		t.Errorf("an unknown queue: %v", err)
	}
	empty := &api.QueuesReceiveResponse{Reason: api.ReasonScheduled, NextDueAt: 77}
	if !h.WaitAgain(empty) || h.WaitUntil(empty) != 77 {
		t.Errorf("an empty answer: again %v until %d", h.WaitAgain(empty), h.WaitUntil(empty))
	}
	more := &api.QueuesReceiveResponse{Reason: api.ReasonScanLimit}
	if until := h.WaitUntil(more); !h.WaitAgain(more) || until == 0 || until > start {
		t.Errorf("after progress it is tried again at %d", until)
	}
	if full := (&api.QueuesReceiveResponse{Deliveries: make([]api.Delivery, 1)}); h.WaitAgain(full) {
		t.Errorf("a delivery is not waited on")
	}
	h.WaitExpired(empty)
	if empty.Reason != api.ReasonWaitElapsed || empty.NextDueAt != 77 {
		t.Errorf("after the wait: %+v", empty)
	}
}

func TestAReceiveWakesOthersForWhatItLeavesOfWhatBecameDue(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for _, id := range []string{"a", "b", "c"} {
		m := msg(id)
		m.NotBefore = api.Time(start + 10)
		b.enqueue(m)
	}
	b.now += 10
	b.one()
	if n := b.hints[wakeKey(b.owner())]; n != 2 {
		t.Errorf("%d are woken for the two messages left", n)
	}
}

func TestAReceiveWakesTheNextForWhatItLeavesUnlessALimitStandsInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		policy   api.QueuePolicy
		enqueued int
		woken    int
	}{
		"nothing is left":         {api.QueuePolicy{}, 1, 0},
		"one message is left":     {api.QueuePolicy{}, 2, 1},
		"many are left":           {api.QueuePolicy{}, 5, 1},
		"the leases are all used": {api.QueuePolicy{MaxInFlightMessages: 1}, 2, 0},
		"a lease is left":         {api.QueuePolicy{MaxInFlightMessages: 2}, 2, 1},
		"the bytes are all used":  {api.QueuePolicy{MaxInFlightBytes: 1}, 2, 0},
	} {
		b := newBed(t, c.policy)
		for i := range c.enqueued {
			b.enqueue(msg(string(rune('a' + i))))
		}
		b.one()
		if got := b.hints[wakeKey(b.owner())]; got != c.woken {
			t.Errorf("%s: wakes %d, want %d", name, got, c.woken)
		}
	}
}

func TestRedriveInABatchComparesItsVersions(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue(msg("a"))
	b.kill(1)
	i := b.inspect("a")
	redrive := func(version, generation uint64) error {
		_, err := b.commit(api.Mutation{RedriveMessage: &api.RedriveMessage{
			Queue: "work", MessageID: "a", ExpectedStateVersion: version, ExpectedDeliveryGeneration: generation, NotBefore: api.Time(b.now + 50),
		}})
		return err
	}
	for _, c := range []struct{ version, generation uint64 }{{i.StateVersion - 1, 1}, {i.StateVersion + 1, 1}, {i.StateVersion, 2}} {
		b.refused("RevisionConflict/message_changed", func() error { return redrive(c.version, c.generation) })
	}
	if err := redrive(i.StateVersion, 1); err != nil || b.state("a") != api.StateScheduled {
		t.Errorf("redrive: %v, a is %s", err, b.state("a"))
	}
	if _, err := b.redrive("none"); code(err) != "NotFound/unknown_message" {
		t.Errorf("redrive of an unknown message: %v", err)
	}
}

func TestACheapAnswerIsGivenOnlyWhenItIsCertain(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightBytes: 3 << 20})
	large := func(id string, bytes int) api.Message {
		return api.Message{MessageID: id, PayloadBase64: make([]byte, bytes), ContentType: "x"}
	}
	b.enqueue(large("a", 1<<20), large("b", 1<<20), large("c", 1<<20))
	if n := len(b.receive(3).Deliveries); n != 2 {
		t.Fatalf("received %d", n)
	}
	r, err := b.cheap(api.QueuesReceiveRequest{})
	if err != nil || r == nil || r.Reason != api.ReasonInFlightLimit {
		t.Errorf("the next does not fit: %+v %v", r, err)
	}
	one := 1
	small := large("small", 10)
	small.Priority = &one
	b.enqueue(small)
	if r, err := b.cheap(api.QueuesReceiveRequest{}); err != nil || r != nil {
		t.Errorf("the next fits: %+v %v", r, err)
	}
	if d := b.one(); d.MessageID != "small" {
		t.Errorf("received %s", d.MessageID)
	}
}
