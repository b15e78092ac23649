package kv

import (
	"github.com/cockroachdb/pebble/v2"
)

// Batch is writes that take effect together, in the order in which they were added,
// without the overlay and the hot rows of a transaction. It belongs to one
// goroutine and is used once.
type Batch struct {
	store *Store
	b     *pebble.Batch
	rows  int   // writes added
	err   error // of the first that could not be
}

// NewBatch makes an empty batch. Commit or Drop it.
func NewBatch(s *Store) *Batch {
	b := &Batch{store: s, b: s.db.NewBatch()}
	if m := s.disk.mark(); m != nil {
		b.err = b.b.LogData(m, nil)
	}
	return b
}

// Set writes a row; key and value are copied.
func (b *Batch) Set(key, value []byte) { b.note(b.b.Set(key, value, nil)) }

// Delete removes a row, present or not.
func (b *Batch) Delete(key []byte) { b.note(b.b.Delete(key, nil)) }

// DeleteRange removes every row of [lower, upper), at a cost that does not grow with
// their number.
func (b *Batch) DeleteRange(lower, upper []byte) { b.note(b.b.DeleteRange(lower, upper, nil)) }

func (b *Batch) note(err error) {
	b.rows++
	if b.err == nil {
		b.err = err
	}
}

// Empty says whether nothing was added.
func (b *Batch) Empty() bool { return b.rows == 0 }

// Bytes is how much was added.
func (b *Batch) Bytes() int { return b.b.Len() }

// Drop throws the batch away.
func (b *Batch) Drop() error { return b.b.Close() }

// Commit writes the batch. With sync it returns once the batch and everything
// committed before it are on disk; without, a power loss may take it, and then
// everything committed after it. After an error nobody knows which of it is stored.
func (b *Batch) Commit(sync bool) error {
	if err := firstError(b.err, b.store.Err()); err != nil {
		return firstError(err, b.b.Close())
	}
	options := pebble.NoSync
	if sync {
		options = pebble.Sync
	}
	err := b.store.db.Apply(b.b, options)
	return firstError(b.store.Err(), err, b.b.Close())
}

// Sync returns once everything that was committed before is on disk.
func Sync(s *Store) error {
	if err := s.Err(); err != nil {
		return err
	}
	m := s.disk.mark()
	if m == nil {
		m = []byte{}
	}
	err := s.db.LogData(m, pebble.Sync)
	return firstError(s.Err(), err)
}
