package changes

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// at is the context of a command in a shard.
func at(tx *kv.Tx, shard uint16) *op.Ctx {
	return op.NewCtx(op.Scope{Space: table.Space{Shard: shard}}, tx, [16]byte{1}, 1, 1, 1)
}

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

func TestChangesAreNumberedFromOneWithoutGaps(t *testing.T) {
	tx := openTx(t)
	for want := uint64(1); want <= 5; want++ {
		got, err := Append(at(tx, 0), Resource, []byte{byte(want)})
		if err != nil || got != want {
			t.Fatalf("revision %d, want %d (%v)", got, want, err)
		}
		if r, err := Revision(tx, 0); r != want || err != nil {
			t.Errorf("the shard says revision %d (%v)", r, err)
		}
	}
	if r, err := Revision(tx, 1); r != 0 || err != nil {
		t.Errorf("another shard says revision %d (%v)", r, err)
	}
}

func TestSinceListsWhatFollowsInOrderUpToItsLimit(t *testing.T) {
	tx := openTx(t)
	for i := range 10 {
		if _, err := Append(at(tx, 0), Kind(1+i%3), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		after       uint64
		limit       int
		first, last uint64
	}{{0, 100, 1, 10}, {0, 3, 1, 3}, {3, 3, 4, 6}, {9, 3, 10, 10}, {10, 3, 0, 0}, {11, 3, 0, 0}} {
		got, err := Since(tx, 0, c.after, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		if c.first == 0 {
			if len(got) != 0 {
				t.Errorf("after %d there are %d changes", c.after, len(got))
			}
			continue
		}
		if len(got) != int(c.last-c.first)+1 || got[0].Revision != c.first {
			t.Errorf("after %d at most %d: %+v", c.after, c.limit, got)
		}
		for i, ch := range got {
			if n := int(c.first) + i; ch.Revision != uint64(n) || ch.Kind != Kind(1+(n-1)%3) || string(ch.Record) != fmt.Sprint(n-1) {
				t.Errorf("change %d is %+v", n, ch)
			}
		}
	}
}

func TestAShardTakesChangesInOrderAndEachOnce(t *testing.T) {
	tx := openTx(t)
	for _, c := range []struct {
		revision uint64
		want     bool
		now      uint64
	}{{2, false, 0}, {1, true, 1}, {1, false, 1}, {3, false, 1}, {2, true, 2}, {0, false, 2}, {3, true, 3}} {
		got, err := Installed(at(tx, 4), c.revision)
		if err != nil || got != c.want {
			t.Errorf("revision %d was taken: %v, want %v (%v)", c.revision, got, c.want, err)
		}
		if r, err := Revision(tx, 4); r != c.now || err != nil {
			t.Errorf("after %d the shard has revision %d, want %d", c.revision, r, c.now)
		}
	}
}
