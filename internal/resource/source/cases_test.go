package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// The field cases this package answers for: what went wrong elsewhere, as a test.

func TestCase034ReplayOfAPurgeGivesTheSameStateWhereverItWasInterrupted(t *testing.T) {
	run := func(seed uint64, restarts bool) string {
		b := newBed(t, api.SourcePolicy{})
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range 20 {
			_, err := b.publish(numbered(1+i*100, 100)...)
			b.must(err)
			if restarts && r.IntN(3) == 0 {
				b.restart()
			}
		}
		for _, through := range []uint64{10, 700, 1999} {
			_, err := b.purge(through)
			b.must(err)
			for b.tick(64) > 0 {
				if restarts && r.IntN(3) == 0 {
					b.restart()
				}
			}
		}
		b.check()
		if p, err := b.read(Read{After: 1999}); err != nil || len(p.Events) != 1 {
			t.Fatalf("the purge went too far: %+v, %v", p, err)
		}
		return b.rows()
	}
	want := run(0, false)
	for seed := range uint64(3) {
		if run(seed, true) != want {
			t.Errorf("seed %d: state differs from that of a twin that never restarted", seed)
		}
	}
}

func TestCase042APurgeToTheTailLeavesNoStoredBytes(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 50)...)
	b.must(err)
	_, err = b.purge(50)
	b.must(err)
	if h := b.head(b.orders()); h.Bytes() != 0 || h.Events() != 0 { // at once, before any due work
		t.Errorf("retained: %d events, %d bytes", h.Events(), h.Bytes())
	}
	b.settle(16)
	if n := b.count(table.Event); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if counts := b.check(); counts["eventBytes"] != 0 {
		t.Errorf("counts %v", counts)
	}
}

func TestCase051AReadOrAPurgeThatChangesNothingWritesNothing(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 3)...)
	b.must(err)
	_, err = b.purge(2)
	b.must(err)
	b.settle(10)
	before := b.tx.Work()
	rows := b.rows()
	for range 1000 {
		_, err = b.purge(2)
		b.must(err)
		_, err = b.read(Read{After: 3})
		b.must(err)
	}
	if w := b.tx.Work(); w.Puts != before.Puts || w.Deletes != before.Deletes || b.rows() != rows {
		t.Errorf("%d writes, %d deletes", w.Puts-before.Puts, w.Deletes-before.Deletes)
	}
}

func TestCase071AHoleIsDamageAndNeverAnEmptyPage(t *testing.T) {
	for _, at := range []uint64{1, 3, 5} { // first, middle, last
		b := newBed(t, api.SourcePolicy{})
		_, err := b.publish(numbered(1, 5)...)
		b.must(err)
		b.must(b.apply(func(c *op.Ctx) error { events.Delete(c.Tx, eventKey{b.orders(), at}); return nil }))
		for _, backward := range []bool{false, true} {
			p, err := b.read(Read{Backward: backward})
			if !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("hole at %d, backward %t: page %+v, error %v", at, backward, p, err)
			}
		}
	}
	for _, damage := range []func(row []byte) []byte{
		func(row []byte) []byte { return row[:len(row)-1] },
		func(row []byte) []byte { return append([]byte{99}, row[1:]...) },
	} {
		b := newBed(t, api.SourcePolicy{})
		_, err := b.publish(numbered(1, 3)...)
		b.must(err)
		b.must(b.apply(func(c *op.Ctx) error {
			key := events.Bytes(eventKey{b.orders(), 2})
			row, _, err := c.R.Get(key)
			c.Tx.Put(key, damage(append([]byte(nil), row...)))
			return err
		}))
		if p, err := b.read(Read{}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("a row that does not decode: page %+v, error %v", p, err)
		}
		err = b.view(func(v *op.View) error {
			return Each(&v.Scope, b.orders(), 1, 3, func(uint64, *Record) (bool, error) { return true, nil })
		})
		if !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("a run over a row that does not decode: %v", err)
		}
		err = b.view(func(v *op.View) error { _, err := At(&v.Scope, b.orders(), 4); return err })
		if !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("an event that must be there: %v", err)
		}
	}
	b := newBed(t, api.SourcePolicy{}) // a reader behind a purge is told so
	_, err := b.publish(numbered(1, 5)...)
	b.must(err)
	_, err = b.purge(5)
	b.must(err)
	_, err = b.read(Read{After: 2})
	wantCode(t, err, fault.HistoryUnavailable, "purged")
}

func TestCase094APositionIsNeverGivenUpByTime(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	var cursor string
	seen := 0
	for i := range 10 {
		b.now += 600_000 // ten minutes between commits; the producer's clock is behind by as much
		e := event(fmt.Sprint("e", i), "1")
		e.OccurredAt = api.Time(b.now - 600_000*int64(i%3))
		_, err := b.publish(e)
		b.must(err)
		p, err := b.read(Read{Cursor: cursor})
		b.must(err)
		seen += len(p.Events)
		cursor = p.Cursor
	}
	if seen != 10 {
		t.Errorf("%d of 10 events were seen", seen)
	}
}

func TestCase102EachEventOfABatchHasItsOwnPosition(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	a, err := b.publish(numbered(1, 100)...)
	b.must(err)
	if a.First != 1 || a.Last != 100 {
		t.Errorf("batch of 100: %+v", a)
	}
	p, err := b.read(Read{Limit: 1})
	b.must(err)
	b.restart() // a reader that stopped after the first goes on with its siblings
	p, err = b.read(Read{Cursor: p.Cursor})
	b.must(err)
	if len(p.Events) != 99 || p.Events[0].Position != 2 || p.Events[98].Position != 100 {
		t.Errorf("%d events from %d", len(p.Events), p.Events[0].Position)
	}
}
