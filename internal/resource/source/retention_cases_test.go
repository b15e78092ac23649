package source

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/table"
)

// The field cases of retention: what went wrong elsewhere, as a test.

func TestCase017APinHoldsHoweverLongItIsIdle(t *testing.T) {
	b := newBed(t, api.SourcePolicy{MaxAgeSeconds: 3600})
	_, err := b.publish(numbered(1, 20)...)
	b.must(err)
	b.pin(b.orders(), "idle", 10)
	for range 40 { // ten days each
		b.now += 10 * 86_400_000
		b.settle(50)
	}
	if h := b.head(b.orders()); h.Cut != 10 {
		t.Errorf("after 400 days the cut is at %d", h.Cut)
	}
	p, err := b.read(Read{After: 10})
	if err != nil || len(p.Events) != 10 || p.Events[0].Position != 11 {
		t.Errorf("it goes on with %+v, %v", p, err)
	}
	b.check()
}

func TestCase019AReaderBehindATrimIsToldTheFirstPositionThereIs(t *testing.T) {
	b := newBed(t, trimming(api.SourcePolicy{MaxEvents: 10}))
	_, err := b.publish(numbered(1, 10)...)
	b.must(err)
	first, err := b.read(Read{Limit: 5})
	b.must(err)
	for i := range 19 {
		_, err := b.publish(numbered(11+i, 1)...)
		b.must(err)
	}
	for _, q := range []Read{{Cursor: first.Cursor}, {After: 5}, {After: 18}} {
		_, err := b.read(q)
		facts(t, wantCode(t, err, fault.HistoryUnavailable, "purged"), map[string]string{"firstAvailable": "20"})
	}
	p, err := b.read(Read{After: 19})
	if err != nil || len(p.Events) != 10 || p.Events[0].Position != 20 {
		t.Errorf("what is retained reads as %+v, %v", p, err)
	}
}

func TestCase034ReplayOfTrimsAndAgesGivesTheSameStateWhereverItWasInterrupted(t *testing.T) {
	run := func(seed uint64, restarts bool) string {
		b := newBed(t, trimming(api.SourcePolicy{MaxEvents: 300, MaxBytes: 12_000, MaxAgeSeconds: 120, EventIDRetentionSeconds: 60}))
		b.pin(b.orders(), "g", 0)
		r := rand.New(rand.NewPCG(seed, 1))
		interrupt := func() {
			if restarts && r.IntN(3) == 0 {
				b.restart()
			}
		}
		for i := range 40 {
			if _, err := b.publish(numbered(1+i*20, 20)...); err != nil {
				wantCode(t, err, fault.ResourceExhausted, "retention_pin")
			}
			interrupt()
			b.now += 2_000
			for b.tick(16) > 0 {
				interrupt()
			}
			if i%7 == 0 {
				b.pin(b.orders(), "g", b.head(b.orders()).Tail)
			}
			if i == 20 {
				b.change(b.topic, func(p *api.SourcePolicy) { p.MaxAgeSeconds = 5 })
			}
		}
		b.check()
		return b.rows()
	}
	want := run(0, false)
	for seed := range uint64(3) {
		if run(seed, true) != want {
			t.Errorf("seed %d: state differs from that of a twin that never restarted", seed)
		}
	}
}

func TestCase042WhatPinsTheHeadOfASourceIsNamedWithItsBytes(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 50)...)
	b.must(err)
	for i, at := range []uint64{40, 15, 50} {
		b.pin(b.orders(), fmt.Sprint("g", i), at)
	}
	_, err = b.purge(15)
	b.must(err)
	_, err = b.purge(50)
	f := wantCode(t, err, fault.ResourceExhausted, "retention_pin")
	facts(t, f, map[string]string{"holder": "g1", "checkpoint": "15", "heldEvents": "35", "heldBytes": fmt.Sprint(b.head(b.orders()).Bytes())})
	for i := range 3 {
		b.pin(b.orders(), fmt.Sprint("g", i), 50)
	}
	_, err = b.purge(50)
	b.must(err)
	if h := b.head(b.orders()); h.Bytes() != 0 || h.Events() != 0 {
		t.Errorf("with every group at the tail %d bytes are left", h.Bytes())
	}
	b.settle(16)
	if n := b.count(table.Event); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	b.check()
}

func TestCase071NothingRemovesAnEventThatAPinNeeds(t *testing.T) {
	b := newBed(t, trimming(api.SourcePolicy{MaxEvents: 8, MaxAgeSeconds: 10}))
	_, err := b.publish(numbered(1, 8)...)
	b.must(err)
	b.pin(b.orders(), "g", 3)
	_, err = b.purge(4)
	wantCode(t, err, fault.ResourceExhausted, "retention_pin")
	_, err = b.publish(numbered(9, 4)...)
	wantCode(t, err, fault.ResourceExhausted, "retention_pin")
	b.now += 1_000_000
	b.settle(10)
	p, err := b.read(Read{After: 3})
	if err != nil || len(p.Events) != 5 || p.Events[0].Position != 4 {
		t.Errorf("after a purge, a trim and an age: %+v, %v", p, err)
	}
	b.check()
}

func TestCase104APinOfOneSourceHoldsNothingOfAnother(t *testing.T) {
	b := newBed(t, trimming(api.SourcePolicy{MaxEvents: 10, MaxAgeSeconds: 100, EventIDRetentionSeconds: 1}))
	_, err := b.append("quiet", api.ExpectAny(), numbered(1, 1)...)
	b.must(err)
	b.pin(b.account("quiet"), "g", 0)
	b.pin(b.orders(), "busy", 0)
	for i := range 200 {
		for _, id := range []string{"quie", "quiet\x00", "other"} {
			_, err := b.append(id, api.ExpectAny(), numbered(i, 1)...)
			b.must(err)
		}
		b.now += 1000
		b.settle(100)
	}
	b.now += 100_000
	b.settle(100)
	b.now += 1000
	b.settle(100)
	if n, ids := b.count(table.Event), b.count(table.EventID); n != 1 || ids != 1 { // the one that is pinned
		t.Errorf("%d events and %d ids are left", n, ids)
	}
	if h := b.head(b.account("quiet")); h.Cut != 0 || h.Tail != 1 {
		t.Errorf("the quiet stream: %+v", h)
	}
	b.check()
}
