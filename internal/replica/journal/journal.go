package journal

import (
	"fmt"

	"github.com/keyload/keyload/internal/kv"
)

// Journal is the log of every shard of a node. It belongs to one goroutine.
type Journal struct {
	store    *kv.Store
	identity *Identity // nil: the journal is new
	shards   []*Shard
}

// Open reads where every shard's log stands: all of it, so that a hole is found now.
// shards is the number of data shards; shard 0 is the catalog's. Errors are those of
// the store, kv.ErrCorrupt for a log that cannot have been written.
func Open(store *kv.Store, shards uint16) (*Journal, error) {
	j := &Journal{store: store}
	snap := store.NewSnapshot()
	defer snap.Close()
	b, ok, err := snap.Get([]byte{kindIdentity})
	if err != nil {
		return nil, err
	}
	if ok {
		j.identity = new(Identity)
		if err := j.identity.decode(b); err != nil {
			return nil, fmt.Errorf("%w: the identity of the journal: %v", kv.ErrCorrupt, err)
		}
	}
	for i := range shards + 1 {
		s := &Shard{store: store, number: i}
		if err := s.load(snap); err != nil {
			return nil, fmt.Errorf("journal of shard %d: %w", i, err)
		}
		j.shards = append(j.shards, s)
	}
	return j, nil
}

// Identity is whose journal it is; false when it is new.
func (j *Journal) Identity() (Identity, bool) {
	if j.identity == nil {
		return Identity{}, false
	}
	return *j.identity, true
}

// Shard is the log of one shard.
func (j *Journal) Shard(n uint16) *Shard { return j.shards[n] }

// Err is why the journal takes no more writes; nil while it does.
func (j *Journal) Err() error { return j.store.Err() }
