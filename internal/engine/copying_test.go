package engine

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/table"
)

func TestShardsOfAMemberFitTogetherIfAllHoldAnEntryAndNoneIsAheadOfTheCatalog(t *testing.T) {
	for name, c := range map[string]struct {
		applied []uint16
		has     []uint64 // revision of each shard
		alone   bool     // fits as a store alone
		member  bool     // fits as one of a cluster
	}{
		"a store alone":                     {nil, []uint64{3, 3, 2}, true, false},
		"a member":                          {[]uint16{0, 1, 2}, []uint64{3, 3, 2}, true, true},
		"a shard one change ahead":          {[]uint16{0, 1, 2}, []uint64{2, 3, 2}, false, false},
		"a shard whose snapshot comes":      {[]uint16{0, 2}, []uint64{3, 0, 3}, false, false},
		"a catalog whose snapshot comes":    {[]uint16{1, 2}, []uint64{0, 3, 3}, false, false},
		"all shards whose snapshots come":   {nil, []uint64{0, 0, 0}, true, false},
		"a store alone that is ahead of it": {nil, []uint64{2, 3, 2}, false, false},
	} {
		s, err := kv.Open("db", kv.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		tx := s.NewTx()
		tx.Begin()
		for _, shard := range c.applied {
			machine.PutApplied(tx, shard, &machine.Applied{Index: 1, Term: 1, Node: 1, Voters: []uint64{1}})
		}
		for shard, n := range c.has {
			ctx := op.NewCtx(op.Scope{Space: table.Space{Shard: uint16(shard)}}, tx, [16]byte{1}, 1, 1, 1)
			for revision := range n {
				if done, err := changes.Installed(ctx, revision+1); err != nil || !done {
					t.Fatal(done, err)
				}
			}
		}
		for member, want := range map[bool]bool{false: c.alone, true: c.member} {
			if got, err := FitTogether(tx, 2, member); err != nil || got != want {
				t.Errorf("%s, member %v: %v (%v), want %v", name, member, got, err, want)
			}
		}
		if err := tx.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
