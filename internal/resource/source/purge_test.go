package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

func TestAPurgeCutsWithinTheSourceOnly(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 5)...)
	b.must(err)
	_, err = b.purge(6) // one above the tail
	if f := wantCode(t, err, fault.Validation, "invalid_field"); f.Facts["tail"] != "5" {
		t.Errorf("facts %v", f.Facts)
	}
	for _, c := range []struct{ through, cut uint64 }{{2, 2}, {2, 2}, {1, 2}, {4, 4}, {5, 5}, {5, 5}} {
		cut, err := b.purge(c.through)
		if err != nil || cut != c.cut {
			t.Errorf("purge through %d: cut %d, %v; want %d", c.through, cut, err, c.cut)
		}
		if h := b.head(b.orders()); h.First() != c.cut+1 || h.Events() != 5-c.cut {
			t.Errorf("purge through %d: head %+v", c.through, h)
		}
		b.check()
	}
	if h := b.head(b.orders()); h.Bytes() != 0 {
		t.Errorf("%d bytes are retained of nothing", h.Bytes())
	}
	a, err := b.publish(event("next", "6"))
	if err != nil || a.First != 6 {
		t.Errorf("numbering after a purge of everything: %+v, %v", a, err)
	}
	b.settle(100)
	b.check()
}

func TestAPurgeCostsTheSameWhateverItCuts(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	for i := range 30 {
		_, err := b.publish(numbered(1+i*100, 100)...)
		b.must(err)
	}
	// The first one asks for pins; that there were none up to the tail is remembered.
	for _, c := range []struct{ through, gets, scans, puts uint64 }{{1, 1, 1, 2}, {2000, 1, 0, 1}, {3000, 0, 0, 1}} {
		before := b.tx.Work()
		_, err := b.purge(c.through)
		b.must(err)
		w := b.tx.Work()
		if w.Gets-before.Gets != c.gets || w.Puts-before.Puts != c.puts || w.Scans-before.Scans != c.scans || w.Deletes != before.Deletes {
			t.Errorf("purge through %d: %d reads, %d scans, %d writes", c.through, w.Gets-before.Gets, w.Scans-before.Scans, w.Puts-before.Puts)
		}
	}
}

func TestPurgedRowsAreRemovedInBoundedSteps(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 25)...)
	b.must(err)
	_, err = b.purge(20)
	b.must(err)
	for left := 25; left > 5; {
		before := b.tx.Work()
		if n := b.tick(8); n != 1 {
			t.Fatalf("%d due rows with %d events left", n, left)
		}
		w := b.tx.Work()
		step := min(8, left-5)
		left -= step
		// the due row and the events are deleted; a list, the head and due rows written
		if w.Deletes-before.Deletes > uint64(step)+1 || w.Puts-before.Puts > 4 {
			t.Errorf("a step of 8: %d deletes, %d writes", w.Deletes-before.Deletes, w.Puts-before.Puts)
		}
		if got := b.count(table.Event); got != left {
			t.Errorf("%d events are stored, want %d", got, left)
		}
		b.check()
		b.restart() // a step is never lost
	}
	if n := b.tick(8); n != 0 {
		t.Errorf("%d due rows after the last step", n)
	}
	if got := b.count(table.EventID); got != 25 {
		t.Errorf("%d identities, want all 25", got)
	}
}

func TestPurgesOfOneBatchShareTheirWork(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 10)...)
	b.must(err)
	b.must(b.apply(func(c *op.Ctx) error {
		r, k, err := Topic(&c.Scope, "orders", 1)
		for _, through := range []uint64{2, 5, 9} {
			if err == nil {
				_, err = Purge(c, r, k, through)
			}
		}
		return err
	}))
	if n := b.tick(100); n != 1 {
		t.Errorf("%d due rows for three purges", n)
	}
	if got := b.count(table.Event); got != 1 {
		t.Errorf("%d events are stored", got)
	}
	b.check()
}

func TestRepeatsOfPurgedEventsAreToldApartUntilTheRetentionOfIDs(t *testing.T) {
	b := newBed(t, api.SourcePolicy{EventIDRetentionSeconds: 100})
	_, err := b.publish(numbered(1, 6)...)
	b.must(err)
	_, err = b.purge(4)
	b.must(err)
	repeat := func(when string, duplicate bool) {
		t.Helper()
		_, err := b.publish(event("e2", "2"))
		_, err2 := b.publish(event("e3", "other"))
		if duplicate {
			wantCode(t, err, fault.DuplicateEventID, "same_content")
			wantCode(t, err2, fault.Conflict, "event_id_taken")
		} else if err != nil || err2 != nil {
			t.Fatalf("%s: %v, %v", when, err, err2)
		}
		b.check()
	}
	repeat("before the rows are removed", true)
	b.settle(3)
	repeat("after the rows are removed", true)
	begin := b.now
	b.now = begin + 100_000 - 1
	b.settle(3)
	repeat("one below the retention", true)
	b.now = begin + 100_000
	b.settle(3)
	repeat("at the retention", false)
	if counts := b.check(); counts["purgedEventIds"] != 0 || b.count(table.PurgedIDs) != 0 || b.count(table.EventID) != 4 {
		t.Errorf("left: %v", counts)
	}
	wantCode(t, fault1(b.publish(event("e5", "5"))), fault.DuplicateEventID, "same_content")
}

func TestIDsAreForgottenInBoundedSteps(t *testing.T) {
	b := newBed(t, api.SourcePolicy{EventIDRetentionSeconds: 1})
	for i := range 6 {
		_, err := b.publish(numbered(1+i*100, 100)...)
		b.must(err)
	}
	_, err := b.purge(600)
	b.must(err)
	b.settle(1000)
	if got := b.count(table.PurgedIDs); got != 3 { // 256 ids a list
		t.Errorf("%d lists for 600 ids", got)
	}
	b.now += 1000
	for left := 600; left > 0; {
		if n := b.tick(100); n != 1 {
			t.Fatalf("%d due rows with %d ids left", n, left)
		}
		left -= 100
		if got := b.count(table.EventID); got != left {
			t.Fatalf("%d identities, want %d", got, left)
		}
		b.check()
	}
	if n := b.tick(100); n != 0 || b.count(table.PurgedIDs) != 0 || b.count(table.Due) != 0 {
		t.Errorf("%d due rows after the last step, %d lists", n, b.count(table.PurgedIDs))
	}
}

func TestARetentionBeyondTheEndOfTimeIsCut(t *testing.T) {
	b := newBed(t, api.SourcePolicy{EventIDRetentionSeconds: 31_536_000})
	b.now = int64(api.MaxTime) - 5
	_, err := b.publish(numbered(1, 1)...)
	b.must(err)
	_, err = b.purge(1)
	b.must(err)
	if h := b.head(b.orders()); h.KeepIDsUntil != int64(api.MaxTime) {
		t.Errorf("ids are kept until %d", h.KeepIDsUntil)
	}
	for _, c := range []struct{ now, seconds, want int64 }{
		{0, 1, 1000}, {int64(api.MaxTime) - 1000, 1, int64(api.MaxTime)},
		{int64(api.MaxTime) - 1001, 1, int64(api.MaxTime) - 1}, {int64(api.MaxTime) - 999, 1, int64(api.MaxTime)},
	} {
		if got := saturatedTime(c.now, c.seconds); got != c.want {
			t.Errorf("%d + %d s = %d, want %d", c.now, c.seconds, got, c.want)
		}
	}
}

func TestADeletedResourceIsRemovedInBoundedStepsAndNothingElse(t *testing.T) {
	b := newBed(t, api.SourcePolicy{EventIDRetentionSeconds: 100})
	_, err := b.publish(numbered(1, 4)...)
	b.must(err)
	kept := b.rows()
	for i := range 7 {
		_, err := b.append(fmt.Sprint("s", i), api.ExpectAny(), numbered(1, 3)...)
		b.must(err)
	}
	b.must(b.apply(func(c *op.Ctx) error { // one with everything a source can have
		_, err := Purge(c, b.set, b.account("s0"), 1)
		return err
	}))
	b.settle(100)
	b.must(b.apply(func(c *op.Ctx) error {
		_, err := Purge(c, b.set, b.account("s0"), 2)
		return err
	}))
	owner := b.account("").Owner
	for total, done := 0, false; !done; {
		b.must(b.apply(func(c *op.Ctx) error {
			n, err := Resource().Purge(c, owner, 5)
			if n > 5 {
				t.Errorf("%d rows in a step of 5", n)
			}
			total, done = total+n, n < 5
			if done && total != 7+20+21+1 { // heads, events, identities, one list
				t.Errorf("%d rows were removed", total)
			}
			return err
		}))
		b.tick(100) // due work between the steps meets nothing half gone
	}
	if b.rows() != kept {
		t.Error("what is left is not what there was without the streams")
	}
	b.check()
}

func TestARemovalOfLargeEventsStopsEarlyAndAsksToBeCalledAgain(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	large := `"` + strings.Repeat("x", 900<<10) + `"`
	for i := range 24 {
		_, err := b.append("s", api.ExpectAny(), event(fmt.Sprint("e", i), large))
		b.must(err)
	}
	owner := b.account("").Owner
	for steps, left := 0, 24; ; steps++ {
		n := 0
		b.must(b.apply(func(c *op.Ctx) (err error) { n, err = Resource().Purge(c, owner, 1_000); return err }))
		events := b.count(table.Event)
		if n < 1_000 {
			if events != 0 || b.count(table.EventID) != 0 || steps != 2 {
				t.Errorf("the last step removed %d rows; %d events are left after %d more", n, events, steps)
			}
			return
		}
		if left-events != 10 { // the tenth comes to more than 8 MiB
			t.Fatalf("a step removed %d events", left-events)
		}
		left = events
	}
}

func TestADueRowThatIsNotASourceIsDamage(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	err := b.apply(func(c *op.Ctx) error { return removePurged(c, []byte{1, 2}, 10) })
	if err == nil || fault.From(err) != nil {
		t.Errorf("got %v, want an error that stops the shard", err)
	}
}

func TestThePurgeOfOneSourceLeavesOthersAlone(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	for _, id := range []string{"a", "a\x00", "a\x00\x01", "b"} {
		_, err := b.append(id, api.ExpectAny(), numbered(1, 3)...)
		b.must(err)
	}
	b.must(b.apply(func(c *op.Ctx) error {
		_, err := Purge(c, b.set, b.account("a"), 3)
		return err
	}))
	b.settle(2)
	b.now += 1_000_000
	b.settle(2)
	for _, id := range []string{"a\x00", "a\x00\x01", "b"} {
		p, err := b.readOf(b.set, b.account(id), Read{})
		b.must(err)
		if got := positions(p.Events); !slices.Equal(got, []uint64{1, 2, 3}) {
			t.Errorf("stream %q: %v", id, got)
		}
	}
	if n := b.count(table.EventID); n != 9 {
		t.Errorf("%d identities", n)
	}
	b.check()
}
