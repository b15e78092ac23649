package partitions

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

func ref(key string) api.PartitionRef {
	return api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: key}
}

func space(key string) table.Space { return table.Space{Shard: 1, Partition: Hash(ref(key))} }

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

func TestNamesThatShareTheirLettersHaveHashesOfTheirOwn(t *testing.T) {
	seen := map[[16]byte]api.PartitionRef{}
	for _, p := range []api.PartitionRef{
		{Tenant: "a", Database: "b", Domain: "c", Key: "d"}, {Tenant: "a/b", Database: "c", Domain: "d", Key: "e"},
		{Tenant: "a", Database: "b/c", Domain: "d", Key: "e"}, {Tenant: "a", Database: "b", Domain: "c", Key: "d/e"},
		{Tenant: "a", Database: "b", Domain: "c/d", Key: "e"}, {Tenant: "a%2Fb", Database: "c", Domain: "d", Key: "e"},
	} {
		h := Hash(p)
		if other, taken := seen[h]; taken {
			t.Errorf("%+v and %+v have one hash", p, other)
		}
		seen[h] = p
	}
}

// Shard numbers are part of the stored form: a partition must be found where an
// earlier version put it.
func TestAPartitionStaysWhereItIs(t *testing.T) {
	for key, want := range map[string]string{
		"main": "e4a8d2530120d2966f88414434136baf in 8", "order-1": "6b6dadb5d564e8318b7b3e0040eaab55 in 6",
		"ä/%": "7ada05211071477b45918e5bddcf717d in 6",
	} {
		h := Hash(ref(key))
		if got := fmt.Sprintf("%x in %d", h, ShardOf(h, 8)); got != want {
			t.Errorf("%q is %s, was %s", key, got, want)
		}
	}
}

func TestPartitionsAreSpreadOverAllShards(t *testing.T) {
	for _, n := range []uint16{1, 2, 8, 64} {
		counts := make([]int, n+1)
		for i := range 64 * 40 {
			s := ShardOf(Hash(ref(fmt.Sprint("key", i))), n)
			if s < 1 || s > n {
				t.Fatalf("shard %d of %d", s, n)
			}
			counts[s]++
		}
		for s, c := range counts[1:] {
			if mean := 64 * 40 / int(n); c < mean/3 || c > mean*3 {
				t.Errorf("of %d shards, %d has %d partitions of %d", n, s+1, c, mean)
			}
		}
	}
}

func TestAPartitionIsRememberedOnceAndCostsOneReadAfterThat(t *testing.T) {
	tx := openTx(t)
	for range 3 {
		if err := Ensure(tx, space("a"), ref("a")); err != nil {
			t.Fatal(err)
		}
	}
	if w := tx.Work(); w.Puts != 1 || w.Gets != 1 {
		t.Errorf("remembering it three times took %d reads and %d writes", w.Gets, w.Puts)
	}
}

func TestPartitionsAreWalkedInTheOrderOfTheirHashesFromAnyPoint(t *testing.T) {
	tx := openTx(t)
	const many = 20
	for i := range many {
		key := fmt.Sprint("key", i)
		if err := Ensure(tx, space(key), ref(key)); err != nil {
			t.Fatal(err)
		}
	}
	other := table.Space{Shard: 2, Partition: Hash(ref("elsewhere"))}
	if err := Ensure(tx, other, ref("elsewhere")); err != nil {
		t.Fatal(err)
	}
	walk := func(from [16]byte) (spaces []table.Space) {
		err := Each(tx, 1, from, func(s table.Space, p api.PartitionRef) (bool, error) {
			if Hash(p) != s.Partition || s.Shard != 1 {
				t.Errorf("%+v is at %x of shard %d", p, s.Partition, s.Shard)
			}
			spaces = append(spaces, s)
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return spaces
	}
	all := walk([16]byte{})
	if len(all) != many {
		t.Fatalf("%d partitions, want %d", len(all), many)
	}
	for i, s := range all {
		if rest := walk(s.Partition); len(rest) != many-i || rest[0] != s {
			t.Errorf("from the %d-th on there are %d", i, len(rest))
		}
		if i > 0 && string(all[i-1].Partition[:]) >= string(s.Partition[:]) {
			t.Errorf("the %d-th is out of order", i)
		}
	}
}
