package check

import (
	"github.com/keyload/keyload/internal/kv"
)

// Shard checks one shard of an open store.
func Shard(store *kv.Store, shard uint16) (*Report, error) {
	s := store.NewSnapshot()
	defer s.Close()
	id, registry, err := open(s)
	if err != nil {
		return nil, err
	}
	a, err := audit(s, registry, id, shard, nil)
	if err != nil {
		return nil, err
	}
	r := newReport(id)
	r.add(shard, a)
	return r, nil
}
