package kv

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Work counts what an evaluation cost. Tests assert it; benches print it.
type Work struct {
	Gets      uint64 // point reads that reached Pebble
	CacheHits uint64 // point reads answered by the overlay or the hot rows
	Scans     uint64 // range reads begun
	Scanned   uint64 // rows range reads looked at
	Puts      uint64 // rows written, counted per command before rows of one entry join
	Deletes   uint64 // rows deleted, likewise
	Bytes     uint64 // bytes of keys and values written, likewise
}

// Reader reads rows: a transaction or a snapshot.
type Reader interface {
	// Get returns the row's value, or nil and false. The value must not be
	// changed and stays valid.
	Get(key []byte) ([]byte, bool, error)
	// Scan calls fn for each row of [lower, upper) in key order, or in reverse,
	// until fn says stop or fails. Key and value are valid within the call only;
	// fn must not write to the transaction it scans.
	Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) (more bool, err error)) error
	// Shared returns the decoded form of a row that is read often and changed
	// rarely, decoding it at most once per version; nil means absent. The result
	// is shared: it must not be changed.
	Shared(key []byte, decode func([]byte) (any, error)) (any, error)
	// Work is what this reader has cost so far.
	Work() Work
}

// Snapshot reads one state of the store, whatever is committed meanwhile.
// Not safe for use by several goroutines at once.
type Snapshot struct {
	store *Store
	snap  *pebble.Snapshot
	lent  bool
	ends  context.Context // scans stop when it does; nil is never
	work  Work
}

// NewSnapshot fixes the current state, committed entries whose sync is still
// under way included: who shows it to a caller must first wait until it is
// durable. Close it.
func (s *Store) NewSnapshot() *Snapshot { return &Snapshot{store: s, snap: s.db.NewSnapshot()} }

// Within makes long scans of the snapshot end with ctx, and returns it.
func (s *Snapshot) Within(ctx context.Context) *Snapshot {
	s.ends = ctx
	return s
}

// lookEvery is how many rows a scan reads between looks at its context.
const lookEvery = 256

// Share makes another reader of the same state, for another goroutine. It must
// not be used after s is closed.
func (s *Snapshot) Share() *Snapshot { return &Snapshot{store: s.store, snap: s.snap, lent: true} }

// Close releases the snapshot.
func (s *Snapshot) Close() error {
	if s.lent {
		return nil
	}
	return s.snap.Close()
}

// Work is what this snapshot's reads have cost so far.
func (s *Snapshot) Work() Work { return s.work }

// Get implements Reader.
func (s *Snapshot) Get(key []byte) ([]byte, bool, error) {
	s.work.Gets++
	return get(s.snap, key)
}

// Scan implements Reader.
func (s *Snapshot) Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) (bool, error)) error {
	s.work.Scans++
	it, err := s.snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return readError(err)
	}
	defer it.Close()
	for ok := first(it, reverse); ok; ok = next(it, reverse) {
		if s.work.Scanned++; s.ends != nil && s.work.Scanned%lookEvery == 0 && s.ends.Err() != nil {
			return context.Cause(s.ends)
		}
		more, err := fn(it.Key(), it.Value())
		if err != nil || !more {
			return err
		}
	}
	return readError(it.Error())
}

func first(it *pebble.Iterator, reverse bool) bool {
	if reverse {
		return it.Last()
	}
	return it.First()
}

func next(it *pebble.Iterator, reverse bool) bool {
	if reverse {
		return it.Prev()
	}
	return it.Next()
}

func get(r pebble.Reader, key []byte) ([]byte, bool, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, readError(err)
	}
	out := append(make([]byte, 0, len(v)), v...)
	return out, true, closer.Close()
}

func readError(err error) error {
	if err != nil && pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %s", ErrCorrupt, damageText(err))
	}
	return err
}
