package kv

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// points reads single rows of the store below the overlay. Most of what a
// command asks for is absent (is this id new?), and Pebble's Get does not ask the
// bloom filters of the last level, where most rows are; an iterator can, and one
// serves a whole entry because the store below does not change until Commit.
type points struct {
	it    *pebble.Iterator
	reads int // of this entry
}

// get finds a row. The first read of an entry is made without an iterator, which
// would cost more to make than it saves.
func (p *points) get(db *pebble.DB, key []byte) ([]byte, bool, error) {
	if p.reads++; p.reads == 1 {
		return get(db, key)
	}
	if p.it == nil {
		it, err := db.NewIter(&pebble.IterOptions{UseL6Filters: true})
		if err != nil {
			return nil, false, readError(err)
		}
		p.it = it
	}
	if !p.it.SeekPrefixGE(key) || !bytes.Equal(p.it.Key(), key) {
		return nil, false, readError(p.it.Error())
	}
	v, err := p.it.ValueAndErr()
	if err != nil {
		return nil, false, readError(err)
	}
	return append(make([]byte, 0, len(v)), v...), true, nil
}

// close ends the entry's reads.
func (p *points) close() error {
	it := p.it
	*p = points{}
	if it == nil {
		return nil
	}
	return readError(it.Close())
}
