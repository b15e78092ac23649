package lineage

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

func openTx(t *testing.T) *kv.Tx {
	t.Helper()
	s, err := kv.Open("db", kv.Options{FS: vfs.NewMem(), NoSync: true, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	tx := s.NewTx()
	tx.Begin()
	t.Cleanup(func() {
		if err := errors.Join(tx.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return tx
}

// end ends the n-th history at position 10 n.
func end(t *testing.T, tx *kv.Tx, n int) {
	t.Helper()
	s := op.Scope{Space: table.Space{Shard: 2}, Now: int64(n), Incarnation: [16]byte{byte(n), byte(n >> 8), 1}}
	if err := End(op.NewCtx(s, tx, [16]byte{1}, uint64(10*n), 1, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestAPositionBelongsToTheHistoryThatEndedAtOrAfterIt(t *testing.T) {
	tx := openTx(t)
	if _, earlier, err := Of(tx, 2, 1); earlier || err != nil {
		t.Errorf("a store that was never restored has an earlier history (%v)", err)
	}
	end(t, tx, 1)
	end(t, tx, 2)
	for position, want := range map[uint64]byte{1: 1, 9: 1, 10: 1, 11: 2, 20: 2, 21: 0} {
		e, earlier, err := Of(tx, 2, position)
		if err != nil || earlier != (want != 0) || e.Incarnation[0] != want || e.Last != 10*uint64(want) || e.At != int64(want) {
			t.Errorf("position %d: %+v, %v, %v", position, e, earlier, err)
		}
	}
	if _, earlier, _ := Of(tx, 3, 1); earlier {
		t.Error("another shard has its history")
	}
	for limit, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 2} {
		got, err := Latest(tx, 2, limit)
		if err != nil || len(got) != want || want > 0 && got[0].Last != 20 {
			t.Errorf("the last %d: %+v, %v", limit, got, err)
		}
	}
}

func TestTheOldestHistoriesAreForgottenAtTheBound(t *testing.T) {
	tx := openTx(t)
	for n := 1; n <= maxEnded+1; n++ {
		end(t, tx, n)
		got, err := Latest(tx, 2, 2*maxEnded)
		if want := min(n, maxEnded); err != nil || len(got) != want || got[0].Last != uint64(10*n) || got[want-1].Last != uint64(10*(n-want+1)) {
			t.Fatalf("after %d there are %d (%v)", n, len(got), err)
		}
	}
	if e, earlier, err := Of(tx, 2, 1); !earlier || e.Last != 20 || err != nil {
		t.Errorf("what came before the oldest one known: %+v, %v, %v", e, earlier, err)
	}
}

func TestTheCheckFindsHistoriesThatDidNotEndOneAfterAnother(t *testing.T) {
	now := [16]byte{9, 9}
	for name, c := range map[string]struct {
		ended []history
		sound bool
	}{
		"in order":           {[]history{{5, [16]byte{1}, 1}, {8, [16]byte{2}, 1}}, true},
		"at the head":        {[]history{{9, [16]byte{1}, 1}}, true},
		"beyond the head":    {[]history{{10, [16]byte{1}, 1}}, false},
		"twice one position": {[]history{{5, [16]byte{1}, 1}, {5, [16]byte{2}, 1}}, false},
		"earlier":            {[]history{{5, [16]byte{1}, 2}, {6, [16]byte{2}, 1}}, false},
		"without a name":     {[]history{{5, [16]byte{}, 2}}, false},
		"the present one":    {[]history{{5, now, 2}}, false},
		"at no position":     {[]history{{0, [16]byte{1}, 2}}, false},
	} {
		tx := openTx(t)
		records.Put(tx, 2, &record{c.ended})
		a := op.NewAudit(op.Scope{R: tx, Now: 2, Space: table.Space{Shard: 2}, Incarnation: now}, []op.Resource{Resource()})
		a.Position, a.Epoch = 9, 1
		a.Partitions, a.Standing = map[[16]byte]bool{}, func(uint32) (op.Standing, error) { return op.Standing{}, nil } // of no resources
		if err := a.Run(); err != nil || (len(a.Findings) == 0) != c.sound {
			t.Errorf("%s: %+v, %v", name, a.Findings, err)
		}
	}
}
