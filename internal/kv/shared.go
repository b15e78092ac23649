package kv

import (
	"bytes"
	"sync"
)

// maxSharedRows bounds the decoded rows kept for snapshots; at the bound they
// are forgotten.
const maxSharedRows = 1 << 14

// sharedRows keeps decoded rows for snapshots. Each stands beside the bytes it
// was decoded from and serves whoever reads the same bytes, so it need not be
// told of changes.
type sharedRows struct {
	mu   sync.RWMutex
	rows map[string]sharedRow
}

type sharedRow struct {
	value   []byte
	decoded any
}

func (c *sharedRows) find(key, value []byte) (any, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok := c.rows[string(key)]
	return r.decoded, ok && bytes.Equal(r.value, value)
}

func (c *sharedRows) keep(key, value []byte, decoded any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows == nil || len(c.rows) >= maxSharedRows {
		c.rows = map[string]sharedRow{}
	}
	c.rows[string(key)] = sharedRow{value, decoded}
}

// Shared implements Reader.
func (s *Snapshot) Shared(key []byte, decode func([]byte) (any, error)) (any, error) {
	value, ok, err := s.Get(key)
	if err != nil || !ok {
		return nil, err
	}
	if d, ok := s.store.shared.find(key, value); ok {
		return d, nil
	}
	d, err := decode(value)
	if err != nil {
		return nil, err
	}
	s.store.shared.keep(key, value, d)
	return d, nil
}
