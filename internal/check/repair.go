package check

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
)

// Repaired is what a repair did, and what a check finds afterwards.
type Repaired struct {
	Report
	Tables []Rebuilt `json:"repaired"` // by table id; those that were changed
}

// Rebuilt counts what was written to one table.
type Rebuilt struct {
	Table    string `json:"table"`
	Added    int64  `json:"added"`
	Removed  int64  `json:"removed"`
	Replaced int64  `json:"replaced"`
	id       table.ID
}

// batchRows and batchBytes bound what is written at once.
const (
	batchRows  = 10_000
	batchBytes = 8 << 20
)

// Repair checks the store in a directory that no process has open, and makes the
// rows that follow from others what those imply: index entries, unique entries,
// orders of pruning, due rows, the shards' copies of the catalog. Rows that follow
// from nothing are reported and left as they are. A store in which nothing has to be
// written is not opened for writing. What was written when a repair is interrupted
// stands, and another repair goes on. Errors are those of Dir, and FormatUnsupported
// for a store of an older format.
func Repair(ctx context.Context, dir string, progress Progress) (*Repaired, error) {
	report, err := Dir(ctx, dir, progress)
	if err != nil {
		return nil, err
	}
	out := &Repaired{Report: *report, Tables: []Rebuilt{}}
	if !report.Derived() {
		return out, nil
	}
	if report.Format < system.Format {
		return nil, fault.New(fault.FormatUnsupported, "older_format",
			"the store has format %d and must be upgraded to %d before it is repaired; nothing was changed. Open it once, for example with keyload admin status --dir %s", report.Format, system.Format, dir)
	}
	store, err := kv.Open(dir, kv.Options{MustExist: true})
	if err != nil {
		return nil, engine.OpenFault(dir, err)
	}
	if out.Tables, err = Rebuild(ctx, store, progress); err == nil {
		if report, err = Store(ctx, store, progress); err == nil {
			out.Report = *report
		}
		err = ended(ctx, err, "the repair was done, and the check after it was ended before it was done")
	}
	if closeErr := store.Close(); err == nil && closeErr != nil {
		err = fault.New(fault.RecoveryRequired, "close_failed", "the repaired store could not be closed: %v. Run the repair again", closeErr)
	}
	return out, err
}

// Rebuild is the writing part of Repair, on an open store that nobody else writes
// to.
func Rebuild(ctx context.Context, store *kv.Store, progress Progress) ([]Rebuilt, error) {
	return rebuild(ctx, store, progress, func(uint16) bool { return true })
}

// rebuild is Rebuild in some shards.
func rebuild(ctx context.Context, store *kv.Store, progress Progress, in func(shard uint16) bool) ([]Rebuilt, error) {
	w := &writer{store: store, in: in, tx: store.NewTx(), tables: map[table.ID]*Rebuilt{}}
	// The copies of the catalog come first: what the rows of a resource imply depends
	// on its definition.
	err := w.stage(ctx, progress, func(t table.Info) bool { return t.ID < table.Document && t.ID != table.Due })
	if err == nil {
		err = w.stage(ctx, progress, func(t table.Info) bool { return t.ID >= table.Document || t.ID == table.Due })
	}
	if err = errors.Join(err, w.tx.Close()); err != nil {
		return nil, ended(ctx, damaged(err), "the repair was ended before it was done; what was written stands, and another repair goes on")
	}
	return w.list(), nil
}

// stage makes some tables anew, by one snapshot.
func (w *writer) stage(ctx context.Context, progress Progress, some func(table.Info) bool) error {
	s := w.store.NewSnapshot().Within(ctx)
	defer s.Close()
	id, registry, err := open(s)
	if err != nil {
		return err
	}
	p := newPace(ctx, w.store, rowsCompared, progress)
	for shard := uint16(0); shard <= id.Shards; shard++ {
		if !w.in(shard) {
			continue
		}
		a, err := audit(s, registry, id, shard, 0, p.row)
		if err != nil {
			return err
		}
		if _, err = a.Differences(0, some, w.difference); err != nil {
			return err
		}
		if err := w.commit(); err != nil {
			return err
		}
		p.before += a.Rows
		if err := p.row(0); err != nil {
			return err
		}
	}
	return nil
}

// writer writes differences in bounded batches.
type writer struct {
	store  *kv.Store
	in     func(shard uint16) bool
	tx     *kv.Tx
	rows   int
	bytes  int
	tables map[table.ID]*Rebuilt
}

func (w *writer) difference(d *op.Difference) error {
	if d.Kept {
		return nil
	}
	if w.rows == 0 {
		w.tx.Begin()
	}
	t := w.tables[d.Table.ID]
	if t == nil {
		t = &Rebuilt{Table: d.Table.Name, id: d.Table.ID}
		w.tables[d.Table.ID] = t
	}
	if d.Implied == nil {
		w.tx.Delete(d.Key)
		t.Removed++
	} else {
		w.tx.Put(d.Key, d.Implied)
		if d.Stored == nil {
			t.Added++
		} else {
			t.Replaced++
		}
	}
	w.rows++
	w.bytes += len(d.Key) + len(d.Implied)
	if w.rows < batchRows && w.bytes < batchBytes {
		return nil
	}
	return w.commit()
}

// commit makes durable what was written.
func (w *writer) commit() error {
	if w.rows == 0 {
		return nil
	}
	w.rows, w.bytes = 0, 0
	pending, err := w.tx.Commit()
	if err == nil {
		err = pending.Wait()
	}
	if err != nil {
		return fault.New(fault.RecoveryRequired, "write_failed", "the repair could not be written: %v. What was written before stands; put the cause right and run it again", err)
	}
	return nil
}

func (w *writer) list() []Rebuilt {
	out := make([]Rebuilt, 0, len(w.tables))
	for _, t := range w.tables {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(x, y Rebuilt) int { return cmp.Compare(x.id, y.id) })
	return out
}
