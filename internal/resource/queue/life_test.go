package queue

import (
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
)

func TestAMessageGoesFromReadyOverLeasedToAckedAndIsForgottenAfterItsRetention(t *testing.T) {
	b := newBed(t, api.QueuePolicy{FinishedRetentionSeconds: 60})
	b.enqueue(api.Message{MessageID: "a", Payload: api.Of(map[string]int{"n": 1}), Headers: map[string]string{"k": "v", "a": "b"}})
	if b.hints[wakeKey(b.owner())] != 1 {
		t.Errorf("hints after an enqueue: %v", b.hints)
	}
	d := b.one()
	if d.MessageID != "a" || string(d.Payload) != `{"n":1}` || d.Headers["k"] != "v" || d.Attempt != 1 || d.DeliveryGeneration != 1 || d.LeaseVersion != 1 ||
		d.LeaseUntil != api.Time(start+30_000) || d.EnqueuedAt != api.Time(start) || d.Token == "" {
		t.Errorf("delivery: %+v", d)
	}
	i := b.inspect("a")
	if i.State != api.StateLeased || i.LeaseOwner != "root" || i.FirstLeasedAt != api.Time(start) || string(i.Payload) != `{"n":1}` {
		t.Errorf("leased: %+v", i)
	}
	r := b.ack(d)[0]
	if r.Error != nil || r.State != api.StateAcked || r.MessageID != "a" || r.StateVersion != 3 {
		t.Errorf("ack: %+v", r)
	}
	if s := b.status(); s.StoredMessages != 0 || s.StoredBytes != 0 || s.InFlightBytes != 0 || s.Counts.Acked != 1 {
		t.Errorf("status after the ack: %+v", s)
	}
	b.later(59_999)
	if got := b.state("a"); got != api.StateAcked {
		t.Errorf("a millisecond before its retention ends the message is %q", got)
	}
	b.later(1)
	if got := b.state("a"); got != "" {
		t.Errorf("after its retention the message is %q", got)
	}
	if s := b.status(); s.Totals.Pruned != 1 || s.Counts.Acked != 0 {
		t.Errorf("status after pruning: %+v", s)
	}
	if n := len(b.rows()); n != 1 {
		t.Errorf("%d rows are left, want the head alone", n)
	}
}

func TestMessagesAreDeliveredByPriorityThenInOrder(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	at := func(id string, p int) api.Message { m := msg(id); m.Priority = &p; return m }
	b.enqueue(at("last", 9), msg("b"), msg("c"), at("first", 0), at("second", 0), msg("d"))
	if got := ids(b.receive(4)); !slices.Equal(got, []string{"first", "second", "b", "c"}) {
		t.Errorf("received %v", got)
	}
	b.enqueue(at("urgent", 1))
	if got := ids(b.receive(10)); !slices.Equal(got, []string{"urgent", "d", "last"}) {
		t.Errorf("received %v", got)
	}
}

func TestAnEmptyReceiveSaysWhy(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightMessages: 1})
	both := func(want api.EmptyReason, next int64) {
		t.Helper()
		before := b.rows()
		c, err := b.cheap(api.QueuesReceiveRequest{})
		b.must(err)
		r := b.receive(1)
		if c == nil || c.Reason != want || int64(c.NextDueAt) != next {
			t.Errorf("cheap answer %+v, want %s next %d", c, want, next)
		}
		if r.Reason != want || int64(r.NextDueAt) != next || len(r.Deliveries) != 0 {
			t.Errorf("answer %+v, want %s next %d", r, want, next)
		}
		if !equalRows(before, b.rows()) {
			t.Errorf("an empty receive changed rows")
		}
	}
	both(api.ReasonEmpty, 0)
	later := msg("later")
	later.NotBefore = api.Time(start + 5_000)
	b.enqueue(later)
	both(api.ReasonScheduled, start+5_000)
	b.enqueue(msg("a"), msg("b"))
	b.one()
	both(api.ReasonInFlightLimit, start+5_000)
	b.now = start + 5_000
	if c, _ := b.cheap(api.QueuesReceiveRequest{}); c != nil {
		t.Errorf("a cheap answer although a scheduled message is due: %+v", c)
	}
}

func equalRows(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func TestAScheduledMessageIsDeliveredFromItsInstantOn(t *testing.T) {
	for _, sweep := range []string{"by receive", "by tick"} {
		t.Run(sweep, func(t *testing.T) {
			b := newBed(t, api.QueuePolicy{})
			m := msg("a")
			m.NotBefore = api.Time(start + 1_000)
			b.enqueue(m)
			b.now += 999
			b.tick()
			if r := b.receive(1); len(r.Deliveries) != 0 {
				t.Fatalf("delivered early")
			}
			b.now++
			if sweep == "by tick" {
				b.tick()
				if b.hints[wakeKey(b.owner())] != 1 || b.state("a") != api.StateReady {
					t.Errorf("after the tick: %v, %s", b.hints, b.state("a"))
				}
			}
			b.one()
		})
	}
}

func TestAnExpiredMessageIsNeverDelivered(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for _, id := range []string{"a", "b"} {
		m := msg(id)
		m.ExpiresAt = api.Time(start + 1_000)
		b.enqueue(m)
	}
	b.enqueue(msg("c"))
	d := b.one()
	b.now += 1_000
	r := b.receive(1)
	if got := ids(r); !slices.Equal(got, []string{"c"}) || r.Examined.Ready != 2 {
		t.Errorf("received %v, examined %+v", got, r.Examined)
	}
	if b.state("b") != api.StateExpired {
		t.Errorf("b is %s", b.state("b"))
	}
	if x := b.ack(d)[0]; x.Error != nil || x.State != api.StateAcked {
		t.Errorf("a lease outlives the expiry: %+v", x)
	}
}

func TestExpiryByTickAndOnReturn(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for _, id := range []string{"waits", "nacked", "lost", "released"} {
		m := msg(id)
		m.ExpiresAt = api.Time(start + 1_000)
		b.enqueue(m)
	}
	got := b.receive(4).Deliveries
	b.complete(api.CompleteItem{Token: got[0].Token, Action: api.ActionRelease})
	b.now += 1_000
	b.tick()
	if b.state("waits") != api.StateExpired {
		t.Errorf("waits is %s", b.state("waits"))
	}
	if x := b.nack(got[1], 0); x.State != api.StateExpired {
		t.Errorf("nack after expiry: %+v", x)
	}
	if x := b.complete(api.CompleteItem{Token: got[3].Token, Action: api.ActionRelease})[0]; x.State != api.StateExpired {
		t.Errorf("release after expiry: %+v", x)
	}
	b.later(30_000)
	if b.state("lost") != api.StateExpired {
		t.Errorf("lost is %s", b.state("lost"))
	}
	if s := b.status(); s.Totals.Expired != 4 || s.StoredMessages != 0 {
		t.Errorf("status: %+v", s)
	}
}
