package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/system"
)

// Maker makes backups of one open store, one at a time.
type Maker struct {
	engine  *engine.Engine
	version string
	busy    atomic.Bool
}

// New makes the maker of a store; version is that of the program.
func New(e *engine.Engine, version string) *Maker { return &Maker{engine: e, version: version} }

// Create writes a backup of the store as it is at one moment within the call: all
// shards at one position each, the catalog with them. On a node of a cluster it has
// everything that any node had acknowledged before the call. Writers go on. Before the
// first byte is written, every row of the copy was read. An error means that what
// was written is no backup; all are *fault.Error: ResourceExhausted
// (reasons backup_running, no_room, catalog_changes), Corruption when damage was met, OwnershipLost when the store closes or
// no majority of a cluster's nodes says how recent the state is, Cancelled, RecoveryRequired.
func (m *Maker) Create(ctx context.Context, w io.Writer, progress check.Progress) (*Backup, error) {
	if !m.busy.CompareAndSwap(false, true) {
		f := fault.New(fault.ResourceExhausted, "backup_running", "a backup of this store is being made already; nothing was read. Try again when it is done")
		return nil, f.WithRetry(fault.RetryAfterChange)
	}
	defer m.busy.Store(false)
	ctx, release, err := engine.Hold(ctx, m.engine)
	if err != nil {
		return nil, err
	}
	defer release()
	of := &subject{store: m.engine.Store(), version: m.version, member: engine.Member(m.engine), durable: m.durable}
	b, err := create(ctx, of, w, progress)
	if err != nil {
		return nil, createFault(ctx, err)
	}
	return b, nil
}

// CreateFor is Create for a caller, who must be an administrator of the store:
// PermissionDenied otherwise.
func (m *Maker) CreateFor(ctx context.Context, who *engine.Caller, w io.Writer, progress check.Progress) (*Backup, error) {
	if err := engine.Administrator(ctx, m.engine, who); err != nil {
		return nil, err
	}
	return m.Create(ctx, w, progress)
}

// create makes a backup of a store.
func create(ctx context.Context, of *subject, w io.Writer, progress check.Progress) (*Backup, error) {
	c, found, err := cut(ctx, of)
	if err != nil {
		return nil, err
	}
	defer c.Close() // what is left is removed when the store is opened
	manifest := &Manifest{Form: Form, Program: of.version, CreatedAt: api.TimeOf(time.Now())}
	if err := readCopy(ctx, c, manifest, progress); err != nil {
		return nil, err
	}
	if err := compare(manifest, found); err != nil {
		return nil, err
	}
	if err := hashFiles(ctx, c, manifest, progress); err != nil {
		return nil, err
	}
	out := &output{w: w}
	id, err := pack(ctx, out, manifest, c.Open, progress)
	if out.err != nil {
		err = out.err
	}
	if err != nil {
		return nil, err
	}
	return &Backup{id, manifest}, nil
}

// output remembers that what an archive is written to has failed.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.err = &outputError{err}
	}
	return n, err
}

type outputError struct{ error }

func (e *outputError) Unwrap() error { return e.error }

// readCopy reads every row of the copy, which verifies every block of it, and
// takes down what it is.
func readCopy(ctx context.Context, c *kv.Checkpoint, m *Manifest, progress check.Progress) error {
	s, err := c.Store()
	if err != nil {
		return err
	}
	snap := s.NewSnapshot().Within(ctx)
	err = describe(snap, m)
	if err == nil {
		rows := &meter{progress, rowsRead, 0, 0}
		err = snap.Scan(nil, nil, false, func(_, _ []byte) (bool, error) {
			if m.Rows++; m.Rows%rowsAtOnce == 0 {
				rows.add(rowsAtOnce)
			}
			return true, nil
		})
	}
	return errors.Join(err, snap.Close(), s.Close())
}

// rowsAtOnce is how often the reading of rows is reported.
const rowsAtOnce = 1 << 14

// describe takes down the identity of a store and where its shards stand.
func describe(r kv.Reader, m *Manifest) error {
	id, ok, err := system.ReadIdentity(r)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: there is no identity of a store", kv.ErrCorrupt)
	}
	m.StoreFormat, m.Incarnation, m.DataShards = id.Format, uuid.UUID(id.Incarnation).String(), int(id.Shards)
	m.Shards = nil
	for i := range id.Shards + 1 {
		h, err := machine.StoredHead(r, i)
		if err != nil {
			return err
		}
		m.Shards = append(m.Shards, Shard{int(i), h.Position, api.Time(h.Time), fmt.Sprintf("%016x", h.Digest)})
	}
	m.CatalogRevision, err = changes.Revision(r, system.CatalogShard)
	return err
}

// compare makes sure that the copy is one of this store and has all that was
// durable before it was made.
func compare(manifest, found *Manifest) error {
	if manifest.Incarnation != found.Incarnation || len(manifest.Shards) != len(found.Shards) {
		return fmt.Errorf("%w: the copy is not one of this store", kv.ErrCorrupt)
	}
	for i, s := range manifest.Shards {
		if s.Position < found.Shards[i].Position {
			return fmt.Errorf("%w: shard %d is at position %d in the copy, and %d was durable", kv.ErrCorrupt, i, s.Position, found.Shards[i].Position)
		}
	}
	return nil
}

// hashFiles takes down every file of the copy; they do not change.
func hashFiles(ctx context.Context, c *kv.Checkpoint, m *Manifest, progress check.Progress) error {
	files := c.Files()
	for _, f := range files {
		m.Bytes += f.Bytes
	}
	hashed := &meter{progress, bytesHashed, 0, m.Bytes}
	for _, f := range files {
		r, err := c.Open(f.Name)
		if err != nil {
			return err
		}
		content := measure(ctx, r, hashed)
		_, err = io.Copy(io.Discard, content)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		m.Files = append(m.Files, File{f.Name, f.Bytes, content.hex()})
	}
	return nil
}

// createFault turns what ended a backup into the contract's codes.
func createFault(ctx context.Context, err error) error {
	var out *outputError
	switch {
	case context.Cause(ctx) != nil:
		return ended(context.Cause(ctx))
	case fault.From(err) != nil:
		return fault.From(err)
	case errors.As(err, &out):
		return fault.New(fault.RecoveryRequired, "backup_not_written", "the backup could not be written: %v. The store is as it was", out.error)
	case errors.Is(err, kv.ErrNoRoom):
		return fault.New(fault.ResourceExhausted, "no_room", "no backup was begun: %v on the disk of the store", err)
	case errors.Is(err, kv.ErrCorrupt):
		return fault.New(fault.Corruption, "damaged_store", "no backup was made, because the store is damaged: %v", err)
	case errors.Is(err, kv.ErrFailed):
		return fault.New(fault.RecoveryRequired, "store_failed", "no backup was made: %v", err)
	}
	return fault.New(fault.RecoveryRequired, "backup_failed", "no backup was made: %v", err)
}
