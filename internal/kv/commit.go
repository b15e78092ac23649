package kv

import (
	"github.com/cockroachdb/pebble/v2"
)

// Pending is an entry that is applied and visible to the shard's next entry,
// and is not yet known to be on disk.
type Pending struct {
	store *Store
	batch *pebble.Batch
	// Rows and Bytes are what reached Pebble after writes of one entry joined.
	Rows, Bytes int
}

// Commit hands the entry's writes to Pebble as one atomic batch and starts
// making it durable; the transaction is then empty and ready for the next
// entry. Nobody may be told of the entry before Wait returns nil.
func (t *Tx) Commit() (*Pending, error) {
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := t.store.Err(); err != nil {
		return nil, err
	}
	t.store.Stage(StageEvaluated)
	b := t.store.db.NewBatch()
	p := &Pending{store: t.store, batch: b}
	var failed error
	if m := t.store.disk.mark(); m != nil {
		if err := b.LogData(m, nil); err != nil {
			return nil, firstError(err, b.Close())
		}
	}
	t.writes.Scan(func(key string, w write) bool {
		if w.encode != nil { // a row that no command's end has made
			w.value = w.encode(nil, w.decoded)
		}
		switch {
		case w.value != nil:
			failed = b.Set([]byte(key), w.value, nil)
			p.Rows++
		case !w.fresh:
			failed = b.Delete([]byte(key), nil)
			p.Rows++
		}
		t.recent.put(key, w.value)
		if _, ok := t.hot[key]; ok {
			t.hot[key] = hotRow{value: w.value, decoded: w.decoded}
		}
		return failed == nil
	})
	if failed != nil {
		return nil, firstError(failed, b.Close())
	}
	t.writes.Clear()
	t.undo, t.command = t.undo[:0], 0
	if p.Rows == 0 {
		p.batch = nil
		return p, b.Close()
	}
	p.Bytes = b.Len()
	t.store.Stage(StageBuilt)
	if t.store.opts.NoSync {
		err := t.store.db.Apply(b, pebble.NoSync)
		t.store.Stage(StageApplied)
		p.batch = nil
		return p, firstError(t.store.Err(), err, b.Close())
	}
	err := t.store.db.ApplyNoSyncWait(b, pebble.Sync)
	t.store.Stage(StageApplied)
	return p, firstError(err, t.store.Err())
}

// Wait returns when the entry is on disk, or says why it is not.
func (p *Pending) Wait() error {
	if p.batch == nil {
		return p.store.Err()
	}
	if err := p.batch.SyncWait(); err != nil {
		p.store.fail(err)
		return p.store.Err()
	}
	return firstError(p.batch.Close(), p.store.Err())
}

// Close ends the reads of the entry. Uncommitted writes stay until the
// transaction is forgotten.
func (t *Tx) Close() error {
	err := t.points.close()
	if t.it != nil {
		err = firstError(err, readError(t.it.Close()))
		t.it = nil
	}
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
