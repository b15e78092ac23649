package source

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// everySecond publishes n events, one a second, and is at the instant of the last.
func (b *bed) everySecond(n int) {
	b.t.Helper()
	for i := range n {
		if i > 0 {
			b.now += 1000
		}
		_, err := b.publish(numbered(int(b.head(b.orders()).Tail)+1, 1)...)
		b.must(err)
	}
}

func (b *bed) wantCut(t *testing.T, when string, cut uint64) {
	t.Helper()
	b.settle(100)
	if h := b.head(b.orders()); h.Cut != cut {
		t.Errorf("%s the cut is at %d, want %d", when, h.Cut, cut)
	}
	b.check()
}

func TestAnEventIsRemovedWhenItsAgeHasPassedAndNotBefore(t *testing.T) {
	b := newBed(t, api.SourcePolicy{MaxAgeSeconds: 100})
	start := b.now
	b.everySecond(5)
	for second := range int64(5) {
		b.now = start + second*1000 + 100_000 - 1
		b.wantCut(t, "a millisecond early", uint64(second))
		b.now++
		b.wantCut(t, "at the age", uint64(second)+1)
	}
	if h := b.head(b.orders()); h.ArmedAge != 0 || b.count(table.Event) != 0 {
		t.Errorf("an empty source waits for %d", h.ArmedAge)
	}
	_, err := b.publish(numbered(6, 1)...) // a source that was emptied is armed again
	b.must(err)
	b.now += 100_000
	b.wantCut(t, "of an event after all were gone", 6)
	_, err = b.read(Read{After: 3})
	facts(t, wantCode(t, err, fault.HistoryUnavailable, "purged"), map[string]string{"firstAvailable": "7"})
	wantCode(t, fault1(b.publish(event("e6", "6"))), fault.DuplicateEventID, "same_content")
}

func TestAnAgeCutsAllThatIsDueWithFewReads(t *testing.T) {
	const all = 2_000
	for _, aged := range []int{1, 2, 255, 1_000, all} {
		b := newBed(t, api.SourcePolicy{MaxAgeSeconds: 100})
		b.manyAtOnce(1, aged)
		b.now += 1000
		b.manyAtOnce(aged+1, all-aged)
		b.now += 99_000
		before := b.tx.Work()
		if n := b.tick(1); n != 1 {
			t.Fatalf("%d due rows", n)
		}
		w := b.tx.Work()
		if h := b.head(b.orders()); h.Cut != uint64(aged) {
			t.Errorf("%d events were cut, want %d", h.Cut, aged)
		}
		if gets, most := w.Gets-before.Gets, 2*bits.Len(uint(aged))+4; gets > uint64(most) || w.Puts-before.Puts > 3 {
			t.Errorf("%d events took %d reads and %d writes, at most %d reads should do", aged, gets, w.Puts-before.Puts, most)
		}
		b.settle(500)
		b.check()
	}
}

func (b *bed) manyAtOnce(from, n int) {
	b.t.Helper()
	for ; n > 0; n, from = n-100, from+100 {
		_, err := b.publish(numbered(from, min(n, 100))...)
		b.must(err)
	}
}

func TestAnAgeCutsUpToTheLowestPinAndTriesAgainOnceAMinute(t *testing.T) {
	b := newBed(t, api.SourcePolicy{MaxAgeSeconds: 100, EventIDRetentionSeconds: 31_536_000})
	start := b.now
	b.everySecond(5)
	b.pin(b.orders(), "slow", 2)
	b.pin(b.orders(), "fast", 5)
	b.now = start + 200_000
	b.wantCut(t, "with a pin at 2", 2)
	held := b.now
	b.pin(b.orders(), "slow", 3)
	b.now = held + heldMillis - 1
	before := b.tx.Work()
	b.wantCut(t, "within the minute", 2)
	if w := b.tx.Work(); w.Gets != before.Gets || w.Puts != before.Puts {
		t.Error("a source that is held is looked at within the minute")
	}
	b.now++
	b.wantCut(t, "after a minute", 3)
	for range 5 { // nothing moves: one look a minute
		b.now += heldMillis
		if n := b.tick(100); n != 1 {
			t.Errorf("%d due rows in a minute", n)
		}
	}
	b.unpin(b.orders(), "slow")
	b.now += heldMillis
	b.wantCut(t, "without the pin", 5)
}

func TestAnAgeThatIsSetOrLoweredReachesWhatIsStoredWithoutTraffic(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	start := b.now
	b.everySecond(10)
	b.now = start + 1_000_000
	b.wantCut(t, "without an age", 0)
	set := func(seconds int64) {
		b.change(b.topic, func(p *api.SourcePolicy) { p.MaxAgeSeconds = seconds })
	}
	set(996) // 1,000 s have passed since the first
	b.wantCut(t, "with an age", 5)
	set(999)
	b.wantCut(t, "with a raised age", 5)
	b.now = start + 1_003_999
	b.wantCut(t, "before the raised age", 5)
	b.now = start + 1_004_000
	b.wantCut(t, "at the raised age", 6)
	set(998)
	b.wantCut(t, "with a lowered age", 7)
	set(0)
	b.now += 1_000_000
	b.wantCut(t, "without an age again", 7)
	if b.count(table.AgeSweep) != 0 {
		t.Error("a sweep is left")
	}
	set(5000)
	b.wantCut(t, "with a long age", 7)
	b.now = start + 9000 + 5_000_000
	b.wantCut(t, "at its end", 10)
}

// An age that is lowered while the topic is empty counts for the next event,
// though the topic is still armed for a later instant.
func TestAnAgeLoweredOfAnEmptySourceCountsForTheNextEvent(t *testing.T) {
	b := newBed(t, api.SourcePolicy{MaxAgeSeconds: 1000})
	b.everySecond(1)
	_, err := b.purge(1)
	b.must(err)
	b.change(b.topic, func(p *api.SourcePolicy) { p.MaxAgeSeconds = 10 })
	b.settle(100)
	b.everySecond(1)
	b.now += 10_000
	b.wantCut(t, "at the lowered age", 2)
}

// lay stores one event in each of some streams of a resource in a partition.
func (b *bed) lay(r *api.Resource, partition byte, streams int) {
	b.t.Helper()
	b.must(b.apply(func(c *op.Ctx) error {
		for i := range streams {
			space := table.Space{Shard: bedSpace.Shard, Partition: [16]byte{0: partition, 15: 0xFF}}
			b.named[space.Partition] = true
			k := Key{Owner: table.Owner{Space: space, Resource: r.ID}, StreamID: fmt.Sprint("s", i), Generation: 1}
			if r.Kind == api.KindTopic {
				k.StreamID = ""
			}
			if _, err := Append(c, r, k, i, api.ExpectAny(), numbered(1, 1)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// A set of many streams in many partitions, among rows of other resources.
func TestALoweredAgeReachesEveryStreamInBoundedSteps(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	above := &api.Resource{Tenant: "default", Database: "main", Domain: "main", Name: "above", Kind: api.KindTopic, Source: b.set.Source, ID: 9, Version: 1}
	b.install(above)
	for partition := range 40 {
		if partition%3 != 1 {
			b.lay(b.topic, byte(partition), 1)
		}
		if partition%2 == 0 {
			b.lay(b.set, byte(partition), partition%7)
		}
		b.lay(above, byte(partition), 1)
	}
	b.lay(b.set, 0xFF, 30)
	b.now += 100_000
	b.change(b.set, func(p *api.SourcePolicy) { p.MaxAgeSeconds = 100 })
	streams := 0
	b.must(b.view(func(v *op.View) error {
		return heads.Scan(v.R, table.Range{}, func(k Key, _ *Head) (bool, error) {
			if k.Owner.Resource == b.set.ID {
				streams++
			}
			return true, nil
		})
	}))
	const budget = 10
	steps := 0
	for ; b.count(table.AgeSweep) > 0; steps++ {
		if steps > 100 {
			t.Fatal("the sweep never ends")
		}
		before := b.tx.Work()
		b.must(b.apply(func(c *op.Ctx) error {
			owner := sweepOwner(table.Owner{Space: bedSpace, Resource: b.set.ID})
			s, _, err := sweeps.Get(c.R, owner)
			if err != nil {
				return err
			}
			table.DueRows.Delete(c.Tx, table.DueKey{Shard: owner.Shard, When: s.Armed, Kind: table.DueAge, Owner: string(owner.Append(nil))})
			return applyAge(c, owner.Append(nil), budget)
		}))
		w := b.tx.Work()
		if w.Scans-before.Scans > budget || w.Scanned-before.Scanned > 2*budget+1 || w.Puts-before.Puts > 2*budget+2 {
			t.Errorf("a step of %d: %d scans of %d rows, %d writes", budget, w.Scans-before.Scans, w.Scanned-before.Scanned, w.Puts-before.Puts)
		}
		b.check()
		if steps%3 == 0 {
			b.restart()
		}
	}
	if steps < streams/budget {
		t.Errorf("%d streams took %d steps", streams, steps)
	}
	b.settle(100)
	b.must(b.view(func(v *op.View) error {
		return heads.Scan(v.R, table.Range{}, func(k Key, h *Head) (bool, error) {
			if cut := h.Cut == 1; cut != (k.Owner.Resource == b.set.ID) {
				t.Errorf("resource %d, partition %x, stream %q: cut at %d", k.Owner.Resource, k.Owner.Partition, k.StreamID, h.Cut)
			}
			return true, nil
		})
	}))
	b.check()
}

func TestASweepBeginsAnewWhenTheAgeIsLoweredAgainAndEndsWithItsResource(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	b.lay(b.set, 1, 20)
	b.now += 50_000
	b.change(b.set, func(p *api.SourcePolicy) { p.MaxAgeSeconds = 100 })
	b.tick(5)
	b.change(b.set, func(p *api.SourcePolicy) { p.MaxAgeSeconds = 50 })
	b.settle(5)
	if n := b.count(table.Event); n != 0 {
		t.Errorf("%d events are left", n)
	}
	b.check()
	b.lay(b.set, 2, 20)
	b.change(b.set, func(p *api.SourcePolicy) { p.MaxAgeSeconds = 40 })
	b.tick(5)
	b.check()
	b.change(b.set, func(p *api.SourcePolicy) { p.MaxAgeSeconds = 0 })
	b.tick(5)
	if b.count(table.AgeSweep) != 0 {
		t.Error("a sweep goes on though nothing ages any more")
	}
	b.check()
}

func TestADeletedResourceLeavesNothingArmed(t *testing.T) {
	b := newBed(t, api.SourcePolicy{MaxAgeSeconds: 100})
	b.everySecond(3)
	b.must(b.apply(func(c *op.Ctx) error {
		_, err := remove(c, b.orders().Owner, 100)
		return err
	}))
	if n := b.count(table.Due); n != 0 {
		t.Errorf("%d due rows are left", n)
	}
	b.now += 1_000_000
	b.settle(10)
	b.check()
}

func TestAnAgeBeyondTheEndOfTimeEndsThere(t *testing.T) {
	b := newBed(t, api.SourcePolicy{MaxAgeSeconds: 3_153_600_000})
	b.now = int64(api.MaxTime) - 5
	b.everySecond(1)
	if h := b.head(b.orders()); h.ArmedAge != int64(api.MaxTime) {
		t.Errorf("armed for %d", h.ArmedAge)
	}
	b.now = int64(api.MaxTime)
	b.wantCut(t, "at the end of time", 1)
}

func TestADueRowOfAnAgeThatIsNeitherSourceNorResourceIsDamage(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	for _, owner := range [][]byte{{1, 2}, make([]byte, table.OwnerBytes+1)} {
		err := b.apply(func(c *op.Ctx) error { return applyAge(c, owner, 10) })
		if err == nil || fault.From(err) != nil {
			t.Errorf("%x: got %v, want an error that stops the shard", owner, err)
		}
	}
}
