package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/system"
)

// maxFindings bounds a report: a store with more is known to be unsound.
const maxFindings = 1000

// readCache is enough for reading everything once, in order.
const readCache = 16 << 20

// Report is what a check found and counted.
type Report struct {
	Incarnation string           `json:"incarnation"`
	Format      int64            `json:"format"`
	Shards      int              `json:"shards"`
	Rows        int64            `json:"rows"`
	Bytes       int64            `json:"bytes"`
	Counts      map[string]int64 `json:"counts"`
	Findings    []op.Finding     `json:"findings"`
	// More is how many findings there are beyond those listed.
	More int64 `json:"more,omitempty"`
}

// Derived says that a repair of the indexes ends some of the findings.
func (r *Report) Derived() bool {
	return slices.ContainsFunc(r.Findings, func(f op.Finding) bool { return f.Derived })
}

// Repairable says that there are findings, and a repair of the indexes ends all of
// them.
func (r *Report) Repairable() bool {
	for _, f := range r.Findings {
		if !f.Derived {
			return false
		}
	}
	return len(r.Findings) > 0
}

// Dir checks the store in a directory that no process has open. Errors are
// *fault.Error: NotFound, Conflict (reason store_in_use), Corruption,
// FormatUnsupported, Cancelled when ctx ends; findings are no error.
func Dir(ctx context.Context, dir string, progress Progress) (*Report, error) {
	store, err := kv.Open(dir, kv.Options{ReadOnly: true, CacheBytes: readCache})
	if err != nil {
		return nil, engine.OpenFault(dir, err)
	}
	r, err := Store(ctx, store, progress)
	return r, errors.Join(err, store.Close())
}

// Store checks an open store on one snapshot. Errors are those of Dir.
func Store(ctx context.Context, store *kv.Store, progress Progress) (*Report, error) {
	s := store.NewSnapshot().Within(ctx)
	defer s.Close()
	id, registry, err := open(s)
	if err != nil {
		return nil, err
	}
	r, err := all(s, registry, id, newPace(ctx, store, rowsChecked, progress))
	if err != nil {
		return nil, ended(ctx, err, "the check was ended before it was done, and says nothing about the store")
	}
	if progress != nil {
		progress(rowsChecked, r.Rows, r.Rows)
	}
	return r, nil
}

// ended tells of work that ended because its context did; what is said of it first.
func ended(ctx context.Context, err error, what string) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil {
		return err
	}
	if f := fault.From(cause); f != nil {
		return f
	}
	return fault.New(fault.Cancelled, "cancelled", "%s: %v", what, cause)
}

// open reads what a store is.
func open(s *kv.Snapshot) (system.Identity, *op.Registry, error) {
	id, ok, err := system.ReadIdentity(s)
	switch {
	case err != nil:
		return id, nil, damaged(err)
	case !ok:
		return id, nil, fault.New(fault.Corruption, "no_identity", "the directory holds a database without the identity of a store")
	case id.Format > system.Format:
		return id, nil, fault.New(fault.FormatUnsupported, "newer_format", "the store has format %d; this program knows formats up to %d", id.Format, system.Format)
	}
	id.Shards = min(id.Shards, system.MaxShards) // a finding of the audit
	registry, err := engine.Registry(api.DurableDisk)
	return id, registry, err
}

// pace tells how far the reading of all shards is, and ends it with its context.
type pace struct {
	ctx      context.Context
	step     Step
	progress Progress // nil for nobody
	estimate int64    // of all rows
	before   int64    // rows of the shards that are done
	told     int64    // of progress; a shard with differences is read more than once
}

func newPace(ctx context.Context, store *kv.Store, step Step, progress Progress) *pace {
	p := &pace{ctx: ctx, step: step, progress: progress}
	if progress != nil {
		p.estimate = kv.RowsEstimate(store)
	}
	return p
}

// row is told of the rows of one shard.
func (p *pace) row(rows int64) error {
	if done := p.before + rows; p.progress != nil && done > p.told {
		p.told = done
		p.progress(p.step, done, max(p.estimate, done+1)) // it is not over yet
	}
	return context.Cause(p.ctx)
}

// all checks every shard.
func all(s *kv.Snapshot, registry *op.Registry, id system.Identity, p *pace) (*Report, error) {
	r := newReport(id)
	for shard := uint16(0); shard <= id.Shards; shard++ {
		a, err := audit(s, registry, id, shard, 0, p.row)
		if err != nil {
			return nil, err
		}
		r.add(shard, a)
		if p.before = r.Rows; shard < id.Shards {
			if err := p.row(0); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

func newReport(id system.Identity) *Report {
	return &Report{
		Incarnation: uuid.UUID(id.Incarnation).String(), Format: id.Format, Shards: int(id.Shards),
		Counts: map[string]int64{}, Findings: []op.Finding{},
	}
}

// add takes over what the audit of a shard came to.
func (r *Report) add(shard uint16, a *op.Audit) {
	r.Rows, r.Bytes, r.More = r.Rows+a.Rows, r.Bytes+a.Bytes, r.More+a.Left
	for name, n := range a.Counts { // sums: their order means nothing
		r.Counts[name] += n
	}
	for _, f := range a.Findings {
		if len(r.Findings) == maxFindings {
			r.More++
			continue
		}
		f.Where = fmt.Sprintf("shard %d: %s", shard, f.Where)
		r.Findings = append(r.Findings, f)
	}
}

func damaged(err error) error {
	if fault.From(err) != nil {
		return err
	}
	if !errors.Is(err, kv.ErrCorrupt) {
		return err
	}
	return fault.New(fault.Corruption, "damaged_bytes", "%v", err)
}
