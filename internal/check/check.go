package check

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
)

// maxFindings bounds a report: a store with more is known to be unsound.
const maxFindings = 1000

// Report is what a check found and counted.
type Report struct {
	Incarnation string           `json:"incarnation"`
	Format      int64            `json:"format"`
	Shards      int              `json:"shards"`
	Rows        int64            `json:"rows"`
	Bytes       int64            `json:"bytes"`
	Counts      map[string]int64 `json:"counts"`
	Findings    []op.Finding     `json:"findings"`
}

// Progress is told how many shards are done.
type Progress func(done, total int)

// Dir checks the store in a directory that no process has open. Errors are
// *fault.Error: NotFound, Conflict (reason store_in_use), Corruption,
// FormatUnsupported; findings are no error.
func Dir(dir string, progress Progress) (*Report, error) {
	store, err := kv.Open(dir, kv.Options{ReadOnly: true})
	if err != nil {
		return nil, engine.OpenFault(dir, err)
	}
	r, err := Store(store, progress)
	return r, errors.Join(err, store.Close())
}

// Store checks an open store on one snapshot.
func Store(store *kv.Store, progress Progress) (*Report, error) {
	s := store.NewSnapshot()
	defer s.Close()
	id, ok, err := system.ReadIdentity(s)
	switch {
	case err != nil:
		return nil, damaged(err)
	case !ok:
		return nil, fault.New(fault.Corruption, "no_identity", "the directory holds a database without the identity of a store")
	case id.Format > system.Format:
		return nil, fault.New(fault.FormatUnsupported, "newer_format", "the store has format %d; this program knows formats up to %d", id.Format, system.Format)
	}
	registry, err := engine.Registry(api.DurableDisk)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Incarnation: uuid.UUID(id.Incarnation).String(), Format: id.Format, Shards: int(id.Shards),
		Counts: map[string]int64{}, Findings: []op.Finding{},
	}
	if err := r.walk(s, registry, id.Shards); err != nil {
		return nil, damaged(err)
	}
	for shard := uint16(0); shard <= id.Shards; shard++ {
		if err := r.shard(s, registry, id, shard); err != nil {
			return nil, damaged(err)
		}
		if progress != nil {
			progress(int(shard)+1, int(id.Shards)+1)
		}
	}
	if len(r.Findings) > maxFindings {
		r.Findings = r.Findings[:maxFindings]
	}
	return r, nil
}

func damaged(err error) error {
	if fault.From(err) != nil {
		return err
	}
	return fault.New(fault.Corruption, "damaged_bytes", "stored bytes are damaged: %v", err)
}

// walk reads every row, which verifies every block's checksum, and finds rows
// that belong to no table or no shard.
func (r *Report) walk(s *kv.Snapshot, registry *op.Registry, shards uint16) error {
	known := map[table.ID]string{}
	for _, res := range registry.Resources() {
		for _, t := range res.Tables {
			known[t.ID] = t.Name
		}
	}
	return s.Scan(nil, nil, false, func(key, value []byte) (bool, error) {
		r.Rows++
		r.Bytes += int64(len(key) + len(value))
		id := table.ID(key[0])
		switch {
		case known[id] == "":
			r.find("table", fmt.Sprintf("%x", key), "the row belongs to no table of this program")
		case id != table.StoreInfo && (len(key) < 3 || binary.BigEndian.Uint16(key[1:]) > shards):
			r.find("shard", fmt.Sprintf("%x", key), "the row belongs to no shard of this store")
		}
		return len(r.Findings) < maxFindings, nil
	})
}

func (r *Report) find(invariant, where, text string) {
	r.Findings = append(r.Findings, op.Finding{Invariant: invariant, Where: where, Text: text})
}

func (r *Report) shard(s *kv.Snapshot, registry *op.Registry, id system.Identity, shard uint16) error {
	head, err := machine.StoredHead(s, shard)
	if err != nil {
		return err
	}
	a := &op.Audit{
		Scope: op.Scope{
			R: s, Now: head.Time, Space: table.Space{Shard: shard}, Incarnation: id.Incarnation, Registry: registry,
		},
		Counts: r.Counts,
	}
	for _, res := range registry.Resources() {
		if res.Check == nil {
			continue
		}
		if err := res.Check(a); err != nil {
			return fmt.Errorf("%s, shard %d: %w", res.Name, shard, err)
		}
	}
	for _, f := range a.Findings {
		f.Where = fmt.Sprintf("shard %d: %s", shard, f.Where)
		r.Findings = append(r.Findings, f)
	}
	return nil
}
