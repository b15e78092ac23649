package machine

import (
	"reflect"
	"testing"

	"github.com/keyload/keyload/internal/table"
)

// What tells how far the log is comes in the batch of the entry, also of one without
// commands, and in no digest.
func TestTheStateSaysWhichEntryOfAReplicatedLogItHolds(t *testing.T) {
	alone, replica := newBed(t), newBed(t)
	if _, ok, err := StoredApplied(replica.store.NewTx(), shard); ok || err != nil {
		t.Fatalf("a store that stands alone names an entry: %v", err)
	}
	at := Applied{Index: 8, Term: 2, Node: 3, Voters: []uint64{1, 3, 9}, Learners: []uint64{4}}
	for _, b := range []*bed{alone, replica} {
		cmd := b.commit(worker, put("d1", `{"n":1}`))
		if b == alone {
			b.apply(b.entry(cmd))
			continue
		}
		outs, _, pending, err := b.m.ApplyAt(&at, b.entry(cmd))
		b.must(err)
		b.must(pending.Wait())
		b.accepted(outs[0])
	}
	stored := func() Applied {
		replica.restart()
		tx := replica.store.NewTx()
		defer tx.Close()
		got, ok, err := StoredApplied(tx, shard)
		if err != nil || !ok {
			t.Fatalf("no entry is named: %v", err)
		}
		return got
	}
	if got := stored(); !reflect.DeepEqual(got, at) {
		t.Errorf("got %+v", got)
	}
	at.Index, at.Learners = 9, nil
	pending, err := replica.m.Note(&at)
	replica.must(err)
	replica.must(pending.Wait())
	if got := stored(); !reflect.DeepEqual(got, at) {
		t.Errorf("got %+v", got)
	}
	if alone.m.Head() != replica.m.Head() {
		t.Errorf("heads differ: %+v, %+v", alone.m.Head(), replica.m.Head())
	}
	tx := replica.store.NewTx()
	tx.Begin()
	ForgetApplied(tx, shard)
	pending, err = tx.Commit()
	replica.must(err)
	replica.must(pending.Wait())
	if n := replica.count(table.Applied); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
