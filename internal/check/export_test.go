package check

import (
	"context"
	"slices"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

// Shard checks one shard of an open store.
func Shard(store *kv.Store, shard uint16) (*Report, error) {
	s := store.NewSnapshot()
	defer s.Close()
	id, registry, err := open(s)
	if err != nil {
		return nil, err
	}
	a, err := audit(s, registry, id, shard, 0, nil)
	if err != nil {
		return nil, err
	}
	r := newReport(id)
	r.add(shard, a)
	return r, nil
}

// RebuildShards is Rebuild in some shards.
func RebuildShards(ctx context.Context, store *kv.Store, shards []uint16) ([]Rebuilt, error) {
	return rebuild(ctx, store, nil, func(shard uint16) bool { return slices.Contains(shards, shard) })
}

// DerivedTables lists the tables of which rows can be made anew.
func DerivedTables(store *kv.Store) (map[table.ID]bool, error) {
	s := store.NewSnapshot()
	defer s.Close()
	id, registry, err := open(s)
	if err != nil {
		return nil, err
	}
	a, err := audit(s, registry, id, 1, 0, nil)
	if err != nil {
		return nil, err
	}
	out := map[table.ID]bool{}
	for _, t := range a.DerivedTables() {
		out[t.ID] = true
	}
	return out, nil
}
