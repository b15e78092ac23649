package queue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/table"
)

// refused applies fn, which must be refused with the code, and makes sure that
// no row of the queue has changed.
func (b *bed) refused(want string, fn func() error) *fault.Error {
	b.t.Helper()
	before := b.rows()
	err := fn()
	if code(err) != want {
		b.t.Errorf("refused with %q (%v), want %q", code(err), err, want)
	}
	if !equalRows(before, b.rows()) {
		b.t.Errorf("%s: the refused command changed rows", want)
	}
	return fault.From(err)
}

func TestTheChargeOfAMessageIsExactlyTheBytesOfTheRowsItsEnqueueWrites(t *testing.T) {
	later, expires, both := msg("later"), msg("expires"), msg("both")
	later.NotBefore = api.Time(start + 1_000)
	expires.ExpiresAt = api.Time(start + 5_000)
	both.NotBefore, both.ExpiresAt = api.Time(start+1_000), api.Time(start+5_000)
	both.Headers, both.OrderingKey, both.FairnessKey = map[string]string{"h": strings.Repeat("v", 300)}, "o", "f"
	large := api.Message{MessageID: strings.Repeat("i", 256), PayloadBase64: make([]byte, 1<<20), ContentType: "a/b"}
	list := []api.Message{msg("plain"), later, expires, both, large}
	for n := range 140 { // around the lengths at which the charge itself gets longer
		list = append(list, api.Message{MessageID: fmt.Sprintf("n%d", n), Payload: payload(n)})
	}
	b := newBed(t, api.QueuePolicy{})
	for _, m := range list {
		before, used := b.rows(), b.status().StoredBytes
		b.enqueue(m)
		bytes := 0
		for k, v := range b.rows() {
			if _, old := before[k]; !old && k[0] != byte(table.LaneHead) && k[0] != byte(table.Due) {
				bytes += len(k) + len(v)
			}
		}
		charged := b.status().StoredBytes - used
		if int64(bytes) != charged || b.inspect(m.MessageID).StoredBytes != charged {
			t.Errorf("%.20s: %d bytes were written, %d charged", m.MessageID, bytes, charged)
		}
	}
}

func TestAQueueTakesMessagesUpToItsQuotaAndNotOneMore(t *testing.T) {
	t.Run("messages", func(t *testing.T) {
		b := newBed(t, api.QueuePolicy{MaxMessages: 3})
		b.fill(2)
		b.enqueue(msg("third"))
		f := b.refused("ResourceExhausted/queue_full", func() error { return b.tryEnqueue(msg("fourth")) })
		if f.Facts["limit"] != "maxMessages" || f.Facts["max"] != "3" || f.Facts["used"] != "3" {
			t.Errorf("facts: %v", f.Facts)
		}
		b.one()
		b.refused("ResourceExhausted/queue_full", func() error { return b.tryEnqueue(msg("fourth")) })
		d := b.one()
		b.ack(d)
		b.enqueue(msg("fourth"))
	})
	t.Run("bytes", func(t *testing.T) {
		probe := newBed(t, api.QueuePolicy{})
		probe.enqueue(msg("a"), msg("b"))
		two := probe.status().StoredBytes
		for _, c := range []struct {
			room int64
			fits bool
		}{{two - 1, false}, {two, true}, {two + 1, true}} {
			b := newBed(t, api.QueuePolicy{MaxBytes: c.room})
			b.enqueue(msg("a"))
			if c.fits {
				b.enqueue(msg("b"))
				continue
			}
			f := b.refused("ResourceExhausted/queue_full", func() error { return b.tryEnqueue(msg("b")) })
			if f.Facts["limit"] != "maxBytes" || f.Facts["needed"] == "" {
				t.Errorf("facts: %v", f.Facts)
			}
		}
	})
}

func TestABatchWithOneMessageTooManyIsRefusedWhole(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxMessages: 2})
	b.refused("ResourceExhausted/queue_full", func() error { return b.tryEnqueue(msg("a"), msg("b"), msg("c")) })
	if s := b.status(); s.StoredMessages != 0 || s.Totals.Enqueued != 0 {
		t.Errorf("status: %+v", s)
	}
}

func TestTimesAMessageCannotKeepAreRefused(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for _, c := range []struct {
		notBefore, expiresAt int64
		fits                 bool
	}{
		{0, start, false}, {0, start - 1, false}, {0, start + 1, true},
		{start + 5, start + 5, false}, {start + 5, start + 6, true}, {start + 6, start + 5, false},
		{int64(api.MaxTime), 0, true}, {0, int64(api.MaxTime), true}, {int64(api.MaxTime) + 1, 0, false},
	} {
		m := msg(fmt.Sprintf("%d-%d", c.notBefore, c.expiresAt))
		m.NotBefore, m.ExpiresAt = api.Time(c.notBefore), api.Time(c.expiresAt)
		before := b.rows()
		err := b.tryEnqueue(m)
		if (err == nil) != c.fits || (err != nil && (fault.CodeOf(err) != fault.Validation || !equalRows(before, b.rows()))) {
			t.Errorf("notBefore %d expiresAt %d: %v", c.notBefore, c.expiresAt, err)
		}
	}
}

func TestAnExistingIDIsAConflictOrADuplicateOfEqualContent(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	first := api.Message{MessageID: "a", Payload: api.Of(1), Headers: map[string]string{"x": "1", "y": "2"}, OrderingKey: "k"}
	b.enqueue(first)
	again := func(m api.Message, mode string) ([]api.MutationResult, error) {
		e := enqueueOf(m)
		e.Enqueue.IfExists = mode
		return b.commit(e)
	}
	f := b.refused("Conflict/message_exists", func() error { _, err := again(first, ""); return err })
	if f.Facts["state"] != "ready" {
		t.Errorf("facts: %v", f.Facts)
	}
	before := b.rows()
	r, err := again(first, api.IfExistsReturn)
	if err != nil || !r[0].Duplicate || r[0].MessageID != "a" || r[0].StateVersion != 1 || !equalRows(before, b.rows()) {
		t.Errorf("equal content: %+v %v", r, err)
	}
	three := 3
	changes := map[string]func(*api.Message){
		"payload":     func(m *api.Message) { m.Payload = api.Of(2) },
		"bytes":       func(m *api.Message) { m.Payload, m.PayloadBase64, m.ContentType = nil, []byte("1"), "text/plain" },
		"headers":     func(m *api.Message) { m.Headers = map[string]string{"x": "1", "y": "3"} },
		"orderingKey": func(m *api.Message) { m.OrderingKey = "l" },
		"fairnessKey": func(m *api.Message) { m.FairnessKey = "l" },
		"priority":    func(m *api.Message) { m.Priority = &three },
		"maxAttempts": func(m *api.Message) { m.MaxAttempts = 7 },
		"notBefore":   func(m *api.Message) { m.NotBefore = api.Time(start + 1) },
		"expiresAt":   func(m *api.Message) { m.ExpiresAt = api.Time(start + 9) },
	}
	for what, change := range changes {
		m := first
		change(&m)
		b.refused("Conflict/message_differs", func() error {
			_, err := again(m, api.IfExistsReturn)
			if err == nil {
				t.Errorf("another %s passes as equal", what)
			}
			return err
		})
	}
	b.ack(b.one())
	if r, err := again(first, api.IfExistsReturn); err != nil || !r[0].Duplicate {
		t.Errorf("after the ack: %+v %v", r, err)
	}
}

func TestAMessageWithoutAnIDGetsOneThatARetryDerivesAgain(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	req := &api.CommandsCommitRequest{CommandID: b.id(), Partition: b.place, Mutations: []api.Mutation{
		enqueueOf(api.Message{Payload: api.Of(1)}), enqueueOf(api.Message{Payload: api.Of(2)}),
	}}
	one, err := call(b, api.CommandsCommit, req)
	b.must(err)
	two, err := call(b, api.CommandsCommit, req)
	b.must(err)
	if one.Results[0].MessageID == one.Results[1].MessageID || one.Results[0].MessageID != two.Results[0].MessageID || one.Results[0].MessageID == "" {
		t.Errorf("ids %+v and %+v", one.Results, two.Results)
	}
	if s := b.status(); s.Totals.Enqueued != 2 {
		t.Errorf("%d messages", s.Totals.Enqueued)
	}
}

func TestReceiveStopsBeforeItsByteBound(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	ten := func(id string) api.Message {
		return api.Message{MessageID: id, PayloadBase64: make([]byte, 8), ContentType: "x", Headers: map[string]string{"h": "v"}}
	}
	b.enqueue(ten("a"), ten("b"), ten("c"))
	f := b.refused("ResourceExhausted/message_too_large", func() error {
		_, err := b.tryReceive(api.QueuesReceiveRequest{MaxMessages: 3, MaxBytes: 9})
		return err
	})
	if f.Facts["messageId"] != "a" || f.Facts["bytes"] != "10" || f.Retry != fault.RetryAfterChange {
		t.Errorf("refusal: %+v", f)
	}
	for _, c := range []struct{ bytes, want int64 }{{10, 1}, {19, 1}, {20, 2}, {21, 2}, {29, 2}, {30, 3}} {
		r, err := b.tryReceive(api.QueuesReceiveRequest{MaxMessages: 3, MaxBytes: c.bytes})
		b.must(err)
		if int64(len(r.Deliveries)) != c.want {
			t.Errorf("%d bytes: %d messages, want %d", c.bytes, len(r.Deliveries), c.want)
		}
		for _, d := range r.Deliveries {
			b.complete(api.CompleteItem{Token: d.Token, Action: api.ActionRelease})
		}
	}
}

func TestInFlightQuotasHoldToTheMessageAndTheByte(t *testing.T) {
	probe := newBed(t, api.QueuePolicy{})
	probe.fill(1)
	one := probe.status().StoredBytes
	for _, c := range []struct{ messages, bytes, want int64 }{
		{3, 0, 3}, {4, 0, 4}, {10, 3*one - 1, 2}, {10, 3 * one, 3}, {10, 3*one + 1, 3},
		{10, 1, 1}, // one message always may, or it would be stuck for good
	} {
		b := newBed(t, api.QueuePolicy{MaxInFlightMessages: c.messages, MaxInFlightBytes: c.bytes})
		b.fill(5)
		if got := int64(len(b.receive(5).Deliveries)); got != c.want {
			t.Errorf("limits %d/%d: leased %d, want %d", c.messages, c.bytes, got, c.want)
		}
		if c.want < 5 {
			r, err := b.cheap(api.QueuesReceiveRequest{MaxMessages: 5})
			if err != nil || r == nil || r.Reason != api.ReasonInFlightLimit {
				t.Errorf("limits %d/%d: then %+v %v", c.messages, c.bytes, r, err)
			}
			if x := b.receive(1); x.Reason != api.ReasonInFlightLimit {
				t.Errorf("limits %d/%d: then %+v", c.messages, c.bytes, x)
			}
		}
	}
}

func TestALeaseLongerThanThePolicyAllowsIsRefused(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxLeaseSeconds: 60})
	b.fill(3)
	for _, c := range []struct {
		seconds int64
		want    string
	}{{59, ""}, {60, ""}, {61, "Validation/invalid_field"}} {
		_, err := b.tryReceive(api.QueuesReceiveRequest{LeaseSeconds: c.seconds})
		if code(err) != c.want {
			t.Errorf("%d seconds: %v", c.seconds, err)
		}
	}
}

func TestAPausedQueueRefusesReceivesAndNothingElse(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(3)
	d := b.one()
	b.configure("work", b.policy(), func(r *api.Resource) { r.Paused = true })
	b.refused("DispatchPaused/queue_paused", func() error {
		_, err := b.tryReceive(api.QueuesReceiveRequest{})
		return err
	})
	if _, err := b.cheap(api.QueuesReceiveRequest{}); code(err) != "DispatchPaused/queue_paused" {
		t.Errorf("cheap: %v", err)
	}
	b.enqueue(msg("x"))
	r := b.complete(api.CompleteItem{Token: d.Token, Action: api.ActionRenew})
	d.Token = r[0].Token
	if r := b.ack(d); r[0].Error != nil {
		t.Errorf("ack: %v", r[0].Error)
	}
	if e := b.explain("x"); e.Reason != "paused" || e.Deliverable {
		t.Errorf("explain: %+v", e)
	}
}

func TestAQueueOfAnotherKindOrDomainOrNoneIsRefused(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.configure("foreign", api.QueuePolicy{}, func(r *api.Resource) { r.Domain = "other" })
	b.configure("topic", api.QueuePolicy{}, func(r *api.Resource) { r.Kind, r.Queue, r.Source = api.KindTopic, nil, &api.SourcePolicy{} })
	for name, want := range map[string]string{"none": "NotFound/unknown_resource", "foreign": "Conflict/foreign_domain", "topic": "Validation/wrong_kind"} {
		_, err := b.commit(api.Mutation{Enqueue: &api.Enqueue{Queue: name, Message: msg("a")}})
		if code(err) != want {
			t.Errorf("enqueue to %s: %v", name, err)
		}
		_, err = b.tryReceive(api.QueuesReceiveRequest{Lane: api.LaneRef{Partition: b.place, Queue: name}})
		if code(err) != want {
			t.Errorf("receive from %s: %v", name, err)
		}
	}
}
