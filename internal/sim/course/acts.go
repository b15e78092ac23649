package course

import (
	"context"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/table"
)

// later moves the clock on and lets happen what is due then.
func later(name string, millis int64) []Step {
	return []Step{
		{Name: name, later: millis},
		{Name: name + ": due work", act: func(ctx context.Context, r *Run) error { return r.tick(ctx) }},
	}
}

// tick lets every shard do what is due, until nothing is.
func (r *Run) tick(ctx context.Context) error {
	e := engine.Chores{Engine: r.engine}
	for shard := uint16(0); shard <= shards; shard++ {
		for {
			if next, _ := e.NextDue(shard); next == 0 || next > r.now.Load() {
				break
			}
			if err := r.noteDues(shard); err != nil {
				return err
			}
			if _, err := e.Tick(ctx, shard); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteDues notes the kinds of what is due.
func (r *Run) noteDues(shard uint16) error {
	s := r.store.NewSnapshot()
	defer s.Close()
	return table.DueRows.Scan(s, table.Range{Prefix: codec.AppendUint16(nil, shard)}, func(k table.DueKey, _ *table.None) (bool, error) {
		if k.When <= r.now.Load() {
			r.dues[k.Kind] = true
		}
		return true, nil
	})
}

// Dues are the kinds of due work that the run has done.
func (r *Run) Dues() map[table.DueKind]bool { return r.dues }

// flush writes the memory of the store out, as happens by itself when it is full:
// a table and an edit of the manifest.
func flush() Step {
	return Step{Name: "flush", act: func(_ context.Context, r *Run) error { return r.store.Flush() }}
}

// compact rewrites all tables.
func compact() Step {
	return Step{Name: "compact", act: func(_ context.Context, r *Run) error { return r.store.Compact([]byte{0}, []byte{0xff}) }}
}

// reopen closes the store and opens it again.
func reopen() Step {
	return Step{Name: "reopen", act: func(_ context.Context, r *Run) error {
		if err := r.Close(); err != nil {
			return err
		}
		return r.Open()
	}}
}
