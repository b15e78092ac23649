package source

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/table"
)

func trimming(p api.SourcePolicy) api.SourcePolicy {
	p.OnFull = api.OnFullTrim
	return p
}

func TestAFullSourceThatTrimsCutsExactlyAsManyEventsAsItMust(t *testing.T) {
	b := newBed(t, trimming(api.SourcePolicy{MaxEvents: 5}))
	next := 1
	for _, c := range []struct {
		events int
		cut    uint64
	}{{4, 0}, {1, 0}, {1, 1}, {3, 4}, {5, 9}, {4, 13}, {1, 14}} {
		a, err := b.publish(numbered(next, c.events)...)
		b.must(err)
		next += c.events
		if h := b.head(b.orders()); h.Cut != c.cut || h.Tail != uint64(next-1) || a.Last != h.Tail {
			t.Errorf("after %d more: cut %d, tail %d; want a cut of %d", c.events, h.Cut, h.Tail, c.cut)
		}
		b.check()
	}
	rows := b.rows()
	_, err := b.publish(numbered(next, 6)...) // one more than the whole quota
	f := wantCode(t, err, fault.ResourceExhausted, "source_full")
	facts(t, f, map[string]string{"limit": "maxEvents", "max": "5", "needed": "6"})
	if b.rows() != rows {
		t.Error("a refused append changed something")
	}
	_, err = b.read(Read{After: 13})
	facts(t, wantCode(t, err, fault.HistoryUnavailable, "purged"), map[string]string{"firstAvailable": "15"})
}

// Events of any size: what is cut is needed, and enough.
func TestAFullSourceThatTrimsCutsNoMoreBytesThanItMust(t *testing.T) {
	sizes := []int{1, 900, 30, 400, 5, 5, 5, 700, 2, 60, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 800, 1, 1}
	for _, most := range []int64{1_100, 1_101, 1_500, 2_000} {
		b := newBed(t, trimming(api.SourcePolicy{MaxBytes: most}))
		for i := range 60 {
			was := b.head(b.orders())
			a, err := b.publish(event(fmt.Sprint("e", i), `"`+strings.Repeat("x", sizes[i%len(sizes)])+`"`))
			b.must(err)
			h := b.head(b.orders())
			if h.Bytes() > uint64(most) || a.Last != uint64(i+1) {
				t.Fatalf("%d bytes are retained, at most %d may be", h.Bytes(), most)
			}
			if h.Cut > was.Cut { // with the last event that was cut it would be too much
				rows, err := b.sizeOf(b.orders(), h.Cut)
				b.must(err)
				if h.Bytes()+rows <= uint64(most) {
					t.Fatalf("event %d was cut and would have fit: %d and %d bytes of %d", h.Cut, h.Bytes(), rows, most)
				}
			}
			b.check()
		}
	}
}

func TestTheBoundOfBytesIsExact(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 2)...)
	b.must(err)
	two := int64(b.head(b.orders()).Bytes())
	for _, c := range []struct {
		most int64
		cut  uint64
	}{{two + 1, 0}, {two, 0}, {two - 1, 1}} {
		b := newBed(t, trimming(api.SourcePolicy{MaxBytes: c.most}))
		for i := range 2 {
			_, err := b.publish(numbered(1+i, 1)...)
			b.must(err)
		}
		if h := b.head(b.orders()); h.Cut != c.cut {
			t.Errorf("with %d bytes for %d the cut is %d, want %d", c.most, two, h.Cut, c.cut)
		}
		b.check()
	}
	b = newBed(t, trimming(api.SourcePolicy{MaxBytes: two - 1}))
	_, err = b.publish(numbered(1, 2)...) // alone one byte more than the quota
	facts(t, wantCode(t, err, fault.ResourceExhausted, "source_full"), map[string]string{"limit": "maxBytes", "needed": fmt.Sprint(two)})
}

func TestATrimStopsAtTheLowestPin(t *testing.T) {
	b := newBed(t, trimming(api.SourcePolicy{MaxEvents: 5}))
	_, err := b.publish(numbered(1, 5)...)
	b.must(err)
	b.pin(b.orders(), "slow", 2)
	b.pin(b.orders(), "fast", 5)
	_, err = b.publish(numbered(6, 1)...)
	b.must(err)
	_, err = b.publish(numbered(7, 1)...) // up to the pin
	b.must(err)
	rows := b.rows()
	_, err = b.publish(numbered(8, 1)...) // one above
	f := wantCode(t, err, fault.ResourceExhausted, "retention_pin")
	facts(t, f, map[string]string{"holder": "slow", "checkpoint": "2", "throughPosition": "3", "heldEvents": "5"})
	for _, says := range []string{"maxEvents is 5", `group "slow"`, "seek it forward or delete it", "raise maxEvents"} {
		if !strings.Contains(f.Detail, says) {
			t.Errorf("%q does not say %q", f.Detail, says)
		}
	}
	if b.rows() != rows {
		t.Error("a refused append changed something")
	}
	b.pin(b.orders(), "slow", 3) // it went on: no publish was lost, and one fits
	_, err = b.publish(numbered(8, 1)...)
	b.must(err)
	_, err = b.publish(numbered(9, 1)...)
	facts(t, wantCode(t, err, fault.ResourceExhausted, "retention_pin"), map[string]string{"holder": "slow", "checkpoint": "3"})
	b.unpin(b.orders(), "slow")
	_, err = b.publish(numbered(9, 2)...)
	b.must(err)
	_, err = b.publish(numbered(11, 1)...)
	facts(t, wantCode(t, err, fault.ResourceExhausted, "retention_pin"), map[string]string{"holder": "fast", "checkpoint": "5"})
	b.check()
}

func TestTheIDsOfTrimmedEventsAreRecognizedAndTheirRowsGoTogether(t *testing.T) {
	b := newBed(t, trimming(api.SourcePolicy{MaxEvents: 10, EventIDRetentionSeconds: 100}))
	for i := range 30 {
		_, err := b.publish(numbered(1+i, 1)...)
		b.must(err)
	}
	if n := b.tick(100); n != 0 || b.count(table.Event) != 30 {
		t.Errorf("%d due rows at once, %d events", n, b.count(table.Event))
	}
	wantCode(t, fault1(b.publish(event("e2", "2"))), fault.DuplicateEventID, "same_content")
	wantCode(t, fault1(b.publish(event("e2", "x"))), fault.Conflict, "event_id_taken")
	b.now += trimRowsMillis - 1
	if n := b.tick(100); n != 0 {
		t.Errorf("%d due rows a millisecond early", n)
	}
	b.now++
	if n := b.tick(100); n != 1 || b.count(table.Event) != 10 || b.count(table.PurgedIDs) != 1 {
		t.Errorf("%d due rows, %d events, %d lists", n, b.count(table.Event), b.count(table.PurgedIDs))
	}
	b.check()
	wantCode(t, fault1(b.publish(event("e20", "20"))), fault.DuplicateEventID, "same_content")
	b.now += 100_000
	b.settle(100)
	_, err := b.publish(event("e20", "20"))
	b.must(err)
	b.check()
}

func TestAPurgeDoesNotWaitForTheRowsOfATrim(t *testing.T) {
	b := newBed(t, trimming(api.SourcePolicy{MaxEvents: 3}))
	_, err := b.publish(numbered(1, 3)...)
	b.must(err)
	_, err = b.publish(numbered(4, 1)...)
	b.must(err)
	_, err = b.purge(2)
	b.must(err)
	if n := b.tick(100); n != 1 || b.count(table.Event) != 2 {
		t.Errorf("%d due rows, %d events are stored", n, b.count(table.Event))
	}
	b.check()
}

// What a trim costs depends neither on how many groups there are nor on how much
// is retained; a large cut is found in logarithmic time.
func TestATrimAsksForPinsOnceForAsManyEventsAsItRetains(t *testing.T) {
	const groups, retained = 500, 50
	b := newBed(t, trimming(api.SourcePolicy{MaxEvents: retained}))
	_, err := b.publish(numbered(1, retained)...)
	b.must(err)
	for i := range groups {
		b.pin(b.orders(), fmt.Sprint("g", i), retained)
	}
	asked := 0
	for i := range retained {
		before := b.tx.Work()
		_, err := b.publish(numbered(retained+1+i, 1)...)
		b.must(err)
		w := b.tx.Work()
		switch w.Scanned - before.Scanned {
		case 0:
		case groups:
			asked++
		default:
			t.Errorf("publish %d looked at %d rows", i, w.Scanned-before.Scanned)
		}
		// The id of the event, and the event after the cut.
		if gets := w.Gets - before.Gets; gets > 2 || w.Puts-before.Puts > 4 || w.Deletes != before.Deletes {
			t.Errorf("publish %d: %d reads, %d writes", i, gets, w.Puts-before.Puts)
		}
	}
	if asked != 1 {
		t.Errorf("pins were asked for %d times", asked)
	}
	before := b.tx.Work()
	_, err = b.publish(numbered(2*retained+1, 1)...)
	wantCode(t, err, fault.ResourceExhausted, "retention_pin")
	if w := b.tx.Work(); w.Scanned-before.Scanned != groups {
		t.Errorf("a refusal looked at %d pins", w.Scanned-before.Scanned)
	}
	b.check()
}

func TestALargeCutIsFoundWithFewReads(t *testing.T) {
	const all = 3_000
	for _, left := range []int64{all - 1, all - 2, all / 2, 100, 2, 1} {
		b := newBed(t, api.SourcePolicy{})
		for i := range all / 100 {
			_, err := b.publish(numbered(1+i*100, 100)...)
			b.must(err)
		}
		share := int64(b.head(b.orders()).Bytes()) * left / all
		b.change(b.topic, func(p *api.SourcePolicy) { p.OnFull, p.MaxBytes = api.OnFullTrim, max(share, 100) })
		before := b.tx.Work()
		_, err := b.publish(numbered(all+1, 1)...)
		b.must(err)
		h := b.head(b.orders())
		most := 2*bits.Len64(h.Cut) + 3
		if gets := b.tx.Work().Gets - before.Gets; gets > uint64(most) || h.Bytes() > uint64(max(share, 100)) {
			t.Errorf("%d of %d events were cut with %d reads, at most %d should do", h.Cut, all, gets, most)
		}
		b.check()
	}
}

func TestASourceThatRejectsIsNeverTrimmed(t *testing.T) {
	b := newBed(t, api.SourcePolicy{MaxEvents: 2})
	_, err := b.publish(numbered(1, 2)...)
	b.must(err)
	rows := b.rows()
	_, err = b.publish(numbered(3, 1)...)
	facts(t, wantCode(t, err, fault.ResourceExhausted, "source_full"), map[string]string{"limit": "maxEvents", "current": "2", "needed": "3"})
	if b.rows() != rows {
		t.Error("a refused append changed something")
	}
	b.change(b.topic, func(p *api.SourcePolicy) { p.OnFull = api.OnFullTrim })
	_, err = b.publish(numbered(3, 1)...)
	b.must(err)
	b.change(b.topic, func(p *api.SourcePolicy) { p.OnFull = api.OnFullReject })
	_, err = b.publish(numbered(4, 1)...)
	wantCode(t, err, fault.ResourceExhausted, "source_full")
}

func TestEachStreamOfASetHasAQuotaOfItsOwn(t *testing.T) {
	b := newBed(t, trimming(api.SourcePolicy{MaxEvents: 3}))
	b.pin(b.account("held"), "g", 0)
	for i := range 5 {
		for _, id := range []string{"a", "b"} {
			_, err := b.append(id, api.ExpectAny(), numbered(i, 1)...)
			b.must(err)
		}
	}
	exact := uint64(5)
	_, err := b.append("a", api.ExpectedStream{Exact: &exact}, numbered(9, 1)...) // a revision counts what was trimmed
	b.must(err)
	for id, cut := range map[string]uint64{"a": 3, "b": 2} {
		if h := b.head(b.account(id)); h.Cut != cut || h.Events() != 3 {
			t.Errorf("stream %s: %+v", id, h)
		}
	}
	b.check()
}
