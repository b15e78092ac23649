package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
)

// pair is a real lane and its twin, and every token that was ever given.
type pair struct {
	b      *bed
	w      *twin
	grips  []grip
	tokens []string
	step   int
}

func newPair(t *rapid.T) *pair {
	p := api.QueuePolicy{
		MaxAttempts: rapid.Int64Range(1, 4).Draw(t, "maxAttempts"), MaxMessages: rapid.Int64Range(4, 30).Draw(t, "maxMessages"),
		MaxInFlightMessages: rapid.Int64Range(1, 12).Draw(t, "maxInFlight"), MaxLeaseSeconds: 60, MaxLeaseAgeSeconds: 90,
		FinishedRetentionSeconds: rapid.Int64Range(1, 120).Draw(t, "retention"),
		DeadLetter:               api.DeadLetterPolicy{MaxMessages: rapid.Int64Range(1, 4).Draw(t, "maxDead")},
		Retry:                    api.RetryPolicy{BaseMillis: 500, Factor: 2, MaxMillis: 3_000},
	}
	b := newBed(t, p)
	return &pair{b: b, w: &twin{now: start, policy: b.policy()}}
}

func (p *pair) id(t *rapid.T) string {
	return fmt.Sprintf("m%02d", rapid.IntRange(0, 39).Draw(t, "id"))
}

func (p *pair) enqueue(t *rapid.T) {
	m := msg(p.id(t))
	priority := rapid.IntRange(3, 5).Draw(t, "priority")
	m.Priority = &priority
	m.NotBefore = api.Time(rapid.SampledFrom([]int64{0, 0, 0, 1, 5_000, 20_000}).Draw(t, "delay"))
	if m.NotBefore != 0 {
		m.NotBefore += api.Time(p.w.now)
	}
	if ttl := rapid.SampledFrom([]int64{0, 0, 0, 3_000, 30_000}).Draw(t, "ttl"); ttl != 0 {
		m.ExpiresAt = api.Time(p.w.now+ttl) + api.Time(rapid.IntRange(0, 1).Draw(t, "later"))
	}
	m.MaxAttempts = rapid.SampledFrom([]int64{0, 0, 1, 3}).Draw(t, "attempts")
	want := ""
	switch {
	case m.ExpiresAt != 0 && m.ExpiresAt <= m.NotBefore:
		want = "Validation/invalid_field"
	case p.w.find(m.MessageID) != nil:
		want = "Conflict/message_exists"
	case p.w.live() >= p.w.policy.MaxMessages:
		want = "ResourceExhausted/queue_full"
	}
	got := code(p.b.tryEnqueue(m))
	if want == "Validation/invalid_field" && (got == "Validation/invalid_request" || got == want) {
		return
	}
	if got != want {
		t.Fatalf("enqueue %s: %s, want %s", m.MessageID, got, want)
	}
	if want != "" {
		return
	}
	w := p.w
	w.totals.Enqueued++
	x := &twinMessage{
		id: m.MessageID, state: api.StateReady, priority: priority, version: 1, generation: 1, maxAttempts: m.MaxAttempts,
		expires: int64(m.ExpiresAt), seq: int(w.totals.Enqueued), bytes: len(m.Payload),
	}
	if int64(m.NotBefore) > w.now {
		x.state, x.notBefore = api.StateScheduled, int64(m.NotBefore)
	} else {
		w.sequence++
		x.place = w.sequence
	}
	w.list = append(w.list, x)
}

func (p *pair) receive(t *rapid.T) {
	n, lease := rapid.Int64Range(1, 6).Draw(t, "n"), rapid.SampledFrom([]int64{1, 10, 60}).Draw(t, "lease")
	bytes := rapid.SampledFrom([]int{5, 20, 40, 1000, 1000}).Draw(t, "bytes")
	claims, reason := p.w.receive(n, lease, bytes)
	r, err := p.b.tryReceive(api.QueuesReceiveRequest{MaxMessages: n, LeaseSeconds: lease, MaxBytes: int64(bytes)})
	if err != nil {
		if code(err) != reason {
			t.Fatalf("receive: %v, want %q", err, reason)
		}
		return
	}
	var want []string
	for _, m := range claims {
		want = append(want, m.id)
	}
	if !slices.Equal(ids(r), want) && len(want)+len(r.Deliveries) > 0 || string(r.Reason) != reason {
		t.Fatalf("receive: %v %q, want %v %q", ids(r), r.Reason, want, reason)
	}
	for _, d := range r.Deliveries {
		p.tokens = append(p.tokens, d.Token)
		p.grips = append(p.grips, grip{d.MessageID, d.DeliveryGeneration, d.LeaseVersion})
	}
}

func (p *pair) complete(t *rapid.T) {
	if len(p.grips) == 0 {
		t.Skip("no token yet")
	}
	var items []api.CompleteItem
	var which []int
	for range rapid.IntRange(1, 4).Draw(t, "items") {
		i := max(0, len(p.grips)-1-rapid.IntRange(0, 12).Draw(t, "back"))
		item := api.CompleteItem{
			Token:  p.tokens[i],
			Action: rapid.SampledFrom([]api.CompleteAction{api.ActionAck, api.ActionAck, api.ActionNack, api.ActionRenew, api.ActionRelease}).Draw(t, "action"),
		}
		switch item.Action {
		case api.ActionRenew:
			item.LeaseSeconds = rapid.SampledFrom([]int64{5, 60, 61}).Draw(t, "renew")
		case api.ActionNack:
			item.Terminal = rapid.IntRange(0, 3).Draw(t, "terminal") == 0
			if d := rapid.SampledFrom([]int64{-1, 0, 4_000}).Draw(t, "delay"); d >= 0 && !item.Terminal {
				item.DelayMillis = &d
			}
		}
		items, which = append(items, item), append(which, i)
	}
	got := p.b.complete(items...)
	var rows []*renewed
	for i := range items {
		want := p.w.complete(p.grips[which[i]], &items[i], &rows)
		if code(got[i].Error) != want {
			t.Fatalf("item %d %s of %v: %v, want %s", i, items[i].Action, p.grips[which[i]], code(got[i].Error), want)
		}
		if got[i].Token != "" {
			m := p.w.find(p.grips[which[i]].id)
			p.tokens = append(p.tokens, got[i].Token)
			p.grips = append(p.grips, grip{m.id, m.generation, m.lease})
		}
	}
}

func (p *pair) manage(t *rapid.T) {
	id := p.id(t)
	m := p.w.find(id)
	if m == nil {
		t.Skip("no such message")
	}
	switch rapid.SampledFrom([]string{"cancel", "reschedule", "redrive", "redrive"}).Draw(t, "verb") {
	case "cancel":
		p.outcome(t, p.b.cancel(id), m.over(), func() {
			p.w.become(m, api.StateCancelled)
			p.w.totals.Cancelled++
			p.w.admit()
		})
	case "reschedule":
		at := p.w.now + rapid.SampledFrom([]int64{-5, 0, 1, 10_000}).Draw(t, "at")
		if m.expires != 0 && at >= m.expires {
			return
		}
		p.outcome(t, p.b.reschedule(id, at), m.state != api.StateReady && m.state != api.StateScheduled, func() {
			switch {
			case m.expires != 0 && m.expires <= p.w.now:
				p.w.expire(m)
			case m.attempts >= p.w.limitOf(m):
				p.w.bury(m)
			case at > p.w.now:
				p.w.become(m, api.StateScheduled)
				m.notBefore = at
			default:
				p.w.become(m, api.StateReady)
			}
		})
	case "redrive":
		_, err := p.b.redrive(id)
		deadNow := m.state == api.StateDeadLettered || m.state == api.StatePendingDeadLetter
		p.outcome(t, err, !deadNow || m.expires != 0 && m.expires <= p.w.now, func() {
			m.generation++
			m.attempts, m.failures, m.losses, m.finished = 0, 0, 0, 0
			p.w.become(m, api.StateReady)
			p.w.totals.Redriven++
			p.w.admit()
		})
	}
}

// limit sets another maxAttempts. What it leaves without an attempt is put aside
// at the next tick.
func (p *pair) limit(t *rapid.T) {
	policy := p.b.policy()
	policy.MaxAttempts = rapid.Int64Range(1, 4).Draw(t, "maxAttempts")
	p.b.configure("work", policy, func(*api.Resource) {})
	p.w.lowered = p.w.lowered || policy.MaxAttempts < p.w.policy.MaxAttempts
	p.w.policy.MaxAttempts = policy.MaxAttempts
}

func (p *pair) tick() { p.b.tick(); p.w.tick() }

func (p *pair) outcome(t *rapid.T, err error, refused bool, apply func()) {
	want := ""
	if refused {
		want = "Conflict/wrong_state"
	}
	if code(err) != want {
		t.Fatalf("%v, want %q", err, want)
	}
	if !refused {
		apply()
	}
}

// compare looks at everything both sides know.
func (p *pair) compare(t *rapid.T) {
	p.step++
	for i := range 40 {
		id := fmt.Sprintf("m%02d", i)
		m, state := p.w.find(id), p.b.state(id)
		if m == nil {
			if state != "" {
				t.Fatalf("%s is %s, want pruned", id, state)
			}
			continue
		}
		g := p.b.inspectMeta(id)
		want := fmt.Sprint(m.state, m.version, m.generation, m.lease, m.attempts, m.failures, m.losses, m.notBefore, m.until, m.first, m.finished)
		got := fmt.Sprint(g.State, g.StateVersion, g.DeliveryGeneration, g.LeaseVersion, g.Attempts, g.Failures, g.LeaseLosses,
			int64(g.NotBefore), int64(g.LeaseUntil), int64(g.FirstLeasedAt), int64(g.FinishedAt))
		if got != want {
			t.Fatalf("%s is %s, want %s", id, got, want)
		}
	}
	if s := p.b.status(); s.Totals != p.w.totals || s.StoredMessages != p.w.live() {
		t.Fatalf("totals %+v, want %+v", s.Totals, p.w.totals)
	}
	if p.step%8 == 0 {
		p.b.check()
	}
}

func (b *bed) inspectMeta(id string) api.MessageInfo {
	b.t.Helper()
	r, err := ask(b, api.QueuesInspect, &api.QueuesInspectRequest{Lane: b.lane(), MessageID: id})
	b.must(err)
	return r.Message
}

func TestALaneBehavesAsItsTwinUnderAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		defer p.b.close()
		t.Repeat(map[string]func(*rapid.T){
			"":         p.compare,
			"enqueue":  p.enqueue,
			"enqueue2": p.enqueue,
			"receive":  p.receive,
			"receive2": p.receive,
			"complete": p.complete,
			"manage":   p.manage,
			"limit":    p.limit,
			"tick":     func(*rapid.T) { p.tick() },
			"wait": func(t *rapid.T) {
				if p.w.lowered {
					p.tick() // the twin does not know what is due first, later on
				}
				d := rapid.SampledFrom([]int64{1, 499, 500, 1_000, 5_000, 31_000}).Draw(t, "wait")
				p.b.now += d
				p.w.now += d
			},
			"restart": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "really") == 0 {
					p.b.restart()
				}
			},
		})
		p.b.check()
	})
}
