package inbox

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
)

// outside is the owner of inputs from elsewhere.
var outside = table.Owner{Space: table.Space{Shard: shard, Partition: partitions.Hash(place)}, Resource: elsewhere}

// edit changes rows outside the log.
func (b *bed) edit(fn func(tx *kv.Tx)) {
	b.t.Helper()
	b.must(b.m.Close())
	tx := b.store.NewTx()
	tx.Begin()
	fn(tx)
	p, err := tx.Commit()
	b.must(err)
	b.must(p.Wait())
	b.must(tx.Close())
	b.m, err = machine.New(b.store, machine.Config{Shard: shard, Incarnation: incarnation, Durability: api.DurableDisk, Registry: b.registry})
	b.must(err)
}

func (b *bed) headOf(o table.Owner) (h head, ok bool) {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	h, ok, err := heads.Get(snap, o)
	b.must(err)
	return h, ok
}

// arriveEach lets n inputs arrive, one in each millisecond.
func (b *bed) arriveEach(n int) {
	b.t.Helper()
	for i := range n {
		_, err := b.arrive(fmt.Sprint("evt", i))
		b.must(err)
		b.now++
	}
}

func TestTheHeadKnowsTheOldestRecordHoweverTheyArePruned(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	begin := b.now
	b.arriveEach(600)
	if h, _ := b.headOf(outside); h.Oldest != begin || h.Armed != begin+horizonMillis {
		t.Errorf("with all of them: %+v, the first at %d", h, begin)
	}
	b.now = begin + horizonMillis + 598 // of all but the last the time has passed
	for _, oldest := range []int64{begin + 256, begin + 512, begin + 599} {
		b.entry(machine.Tick())
		if h, _ := b.headOf(outside); h.Oldest != oldest {
			t.Errorf("the oldest is said to be of %d, want %d", h.Oldest-begin, oldest-begin)
		}
		b.check()
	}
	b.later(1)
	if h, ok := b.headOf(outside); ok {
		t.Errorf("without any: %+v", h)
	}
}

func TestPruningBeginsAtTheOldestRecord(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	begin := b.now
	b.arriveEach(3)
	stray := orderKey{outside, begin - 1, 1} // where nothing is that pruning has not seen
	b.edit(func(tx *kv.Tx) { order.Put(tx, stray, &key{Owner: outside, Input: "a\x1fb"}) })
	b.later(horizonMillis)
	snap := b.store.NewSnapshot()
	kept, err := order.Has(snap, stray)
	b.must(err)
	b.must(snap.Close())
	if _, ok := b.headOf(outside); !kept || ok {
		t.Errorf("pruned all the others: %v; walked over what lies before them: %v", !ok, !kept)
	}
	b.edit(func(tx *kv.Tx) { order.Delete(tx, stray) })
}

func TestAHeadThatKnowsNoOldestIsReadAndPruned(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	begin := b.now
	b.arriveEach(300)
	armed := head{Armed: begin + horizonMillis}
	stored := heads.Encode(nil, &armed)
	stored = append([]byte{1}, stored[1:len(stored)-1]...) // as version 1 wrote it
	b.edit(func(tx *kv.Tx) { tx.Put(heads.Bytes(outside), stored) })
	if h, ok := b.headOf(outside); !ok || h != armed {
		t.Errorf("%+v", h)
	}
	b.check()
	b.now = begin + horizonMillis + 298
	b.entry(machine.Tick())
	if h, _ := b.headOf(outside); h.Oldest != begin+256 {
		t.Errorf("after a step %+v", h)
	}
	b.later(1)
	if n := b.check()["inboxRecords"]; n != 0 {
		t.Errorf("%d records are left", n)
	}
}

func TestTheStoredFormOfAHeadIsTheRecordedOne(t *testing.T) {
	if got := hex.EncodeToString(heads.Encode(nil, &head{Armed: 7, Oldest: -3})); got != "020e05" {
		t.Errorf("it is %s", got)
	}
	for stored, want := range map[string]head{"010e": {Armed: 7}, "020e05": {Armed: 7, Oldest: -3}} {
		b, err := hex.DecodeString(stored)
		var h head
		if err == nil {
			err = heads.Decode(b, &h)
		}
		if err != nil || h != want {
			t.Errorf("%s is read as %+v, %v", stored, h, err)
		}
	}
	for _, bad := range []string{"", "00", "01", "02", "020e", "030e05", "010e05", "020e0505"} {
		b, _ := hex.DecodeString(bad)
		if heads.Decode(b, new(head)) == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestTheCheckFindsAnOldestRecordBelowTheHeadsBound(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	begin := b.now
	b.arriveEach(2)
	for oldest, want := range map[int64]int{begin - 1: 0, begin: 0, begin + 1: 1} {
		b.edit(func(tx *kv.Tx) { heads.Put(tx, outside, &head{Armed: begin + horizonMillis, Oldest: oldest}) })
		if n := findings(b); n != want {
			t.Errorf("with a bound of %d: %d findings, want %d", oldest-begin, n, want)
		}
	}
	b.edit(func(tx *kv.Tx) { heads.Put(tx, outside, &head{Armed: begin + horizonMillis, Oldest: begin}) })
}
