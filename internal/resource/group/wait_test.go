package group

import (
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/source"
)

// woken is how many waiting receives of "g" the last command can serve.
func (b *bed) woken() int {
	b.t.Helper()
	n := 0
	b.must(b.view(func(v *op.View) error {
		_, _, def, err := look(&v.Scope, b.ref("g"))
		if err == nil {
			n = b.hints[wakeKey(def.ref(name{b.key(), "g"}))]
		}
		return err
	}))
	return n
}

func TestAReceiveWaitsForEventsOfItsSourceAndForItsGroup(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	w := waitReceive()
	req := &api.SubscriptionsReceiveRequest{Group: b.ref("g"), WaitMillis: 20_000}
	api.ApplyDefaults(req)
	var keys []string
	var class string
	b.must(b.view(func(v *op.View) (err error) { keys, class, err = w.Keys(v, req); return err }))
	if w.Millis(req) != 20_000 || len(keys) != 2 || keys[0] != source.WakeKey(b.key()) || class != keys[1] {
		t.Errorf("waits %d ms for %q as %q", w.Millis(req), keys, class)
	}
	b.fill(1)
	if b.hints[keys[0]] == 0 {
		t.Error("a publish wakes nobody")
	}
	for _, c := range []struct {
		reason, expired api.EmptyReason
		until           int64
	}{{api.ReasonEmpty, api.ReasonWaitElapsed, 5}, {api.ReasonScanLimit, api.ReasonScanLimit, 1}, {api.ReasonWindowFull, api.ReasonWindowFull, 5}} {
		r := &api.SubscriptionsReceiveResponse{Reason: c.reason, NextDueAt: 5}
		if !w.Again(r) || w.Until(r) != c.until {
			t.Errorf("%s: again %t, until %d", c.reason, w.Again(r), w.Until(r))
		}
		if w.Expired(r); r.Reason != c.expired {
			t.Errorf("%s ends as %s", c.reason, r.Reason)
		}
	}
	if w.Again(&api.SubscriptionsReceiveResponse{Deliveries: make([]api.GroupDelivery, 1)}) {
		t.Error("a receive with deliveries waits")
	}
}

func TestWhatMakesPositionsClaimableWakesAsManyReceives(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxWindow: 6, MaxInFlight: 4})
	b.fill(20)
	wakes := func(what string, n int, do func()) {
		t.Helper()
		do()
		if got := b.woken(); got != n {
			t.Errorf("%s wakes %d, want %d", what, got, n)
		}
	}
	var d []api.GroupDelivery
	wakes("a receive", 0, func() { d = b.receive(4).Deliveries })
	wakes("an ack that frees two leases", 2, func() { b.ack(d[2:]...) })
	d = append(d[:2], b.receive(2).Deliveries...) // 5 and 6: the window is full
	wakes("an ack that frees a lease and no window", 1, func() { b.ack(d[3]) })
	wakes("an ack that frees the window", 1, func() { b.ack(d[0]) })
	wakes("a nack that waits frees no lease that was wanting", 0, func() { b.nack(d[1], 5_000) })
	wakes("a tick before it is due", 0, func() { b.later(4_999) })
	wakes("the tick that lets it be tried again", 1, func() { b.later(1) })
	again := b.one()
	wakes("a release", 1, func() { b.did(api.CompleteItem{Token: again.Token, Action: api.ActionRelease}) })
	wakes("a pause", everyone, func() { b.pause() })
	wakes("a second pause", 0, func() { b.pause() })
	wakes("a resume", everyone, func() { b.resume() })
	b.terminal(b.one())
	wakes("a redrive", 1, func() { b.must(second(b.redrive(2, 0))) })
	again = b.one()
	b.pause()
	wakes("a nack while the group is paused", 0, func() { b.nack(again, 0) })
	b.resume()
	wakes("a seek", everyone, func() { b.must(second(b.trySeek(api.SubscriptionsSeekRequest{To: api.SeekNow}))) })
	wakes("an update", everyone, func() { b.must(second(b.configure("g", typed("a"), 2))) })
	var key string
	b.must(b.view(func(v *op.View) error {
		_, n, def, err := look(&v.Scope, b.ref("g"))
		key = wakeKey(def.ref(n))
		return err
	}))
	if b.must(b.delete("g", 20)); b.hints[key] != everyone {
		t.Errorf("a deletion wakes %d", b.hints[key])
	}
}

func TestAReceiveWakesTheNextForWhatItLeavesUnlessALimitStandsInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		policy    api.GroupPolicy
		published int
		woken     int
	}{
		"nothing is left":         {api.GroupPolicy{}, 2, 0},
		"one event is left":       {api.GroupPolicy{}, 3, 1},
		"many are left":           {api.GroupPolicy{}, 9, 1},
		"the window is full":      {api.GroupPolicy{MaxWindow: 2}, 3, 0},
		"the window has room":     {api.GroupPolicy{MaxWindow: 3}, 3, 1},
		"the leases are all used": {api.GroupPolicy{MaxInFlight: 2}, 3, 0},
		"a lease is left":         {api.GroupPolicy{MaxInFlight: 3}, 3, 1},
	} {
		b := newBed(t, c.policy)
		b.fill(c.published)
		if r := b.receive(2); len(r.Deliveries) != 2 || b.woken() != c.woken {
			t.Errorf("%s: received %v, wakes %d, want %d", name, positions(r), b.woken(), c.woken)
		}
	}
}

func TestAReceiveThatLeavesReadyPositionsWakesTheNext(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(5)
	b.receive(5)
	b.now += 31_000
	r := b.receive(2) // the sweep made five claimable
	if got := b.woken(); !slices.Equal(positions(r), []uint64{1, 2}) || got != 3 {
		t.Errorf("received %v, wakes %d", positions(r), got)
	}
}
