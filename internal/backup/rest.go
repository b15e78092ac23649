package backup

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/system"
)

// Rest is a store on which nothing works while backups of it are made: nothing that
// is due happens, no row is written, and one of an older format stays as it is. Not
// safe for concurrent use.
type Rest struct {
	store   *kv.Store
	version string
	found   *Manifest
}

// OpenRest opens the store in a directory that no process has open; version is that
// of the program. Close it. Errors are *fault.Error: NotFound (reason no_store),
// Conflict (reasons store_in_use, cluster_member), FormatUnsupported for a store of a
// newer program, Corruption, RecoveryRequired.
func OpenRest(dir, version string, logger *slog.Logger) (*Rest, error) {
	store, err := kv.Open(dir, kv.Options{MustExist: true, Logger: logger})
	if err != nil {
		return nil, engine.OpenFault(dir, err)
	}
	r := &Rest{store: store, version: version, found: &Manifest{}}
	if err := r.look(); err != nil {
		return nil, engine.OpenFault(dir, errors.Join(err, store.Close()))
	}
	return r, nil
}

// look takes down what there is, and refuses what is no store alone or of a format
// that this program does not know.
func (r *Rest) look() error {
	s := r.store.NewSnapshot()
	defer s.Close() // it is only read
	if err := describe(s, r.found); err != nil {
		return err
	}
	if r.found.StoreFormat > system.Format {
		return fault.New(fault.FormatUnsupported, "newer_format",
			"the store has format %d; this program knows formats up to %d. No backup was made; use the program that wrote it, or a newer one", r.found.StoreFormat, system.Format)
	}
	return engine.Alone(r.store, uint16(r.found.DataShards))
}

// Incarnation is that of the store.
func (r *Rest) Incarnation() string { return r.found.Incarnation }

// Create writes a backup of the store. Errors are those of Maker.Create.
func (r *Rest) Create(ctx context.Context, w io.Writer, progress check.Progress) (*Backup, error) {
	durable := func(context.Context) (*Manifest, error) { return r.found, nil }
	b, err := create(ctx, &subject{store: r.store, version: r.version, durable: durable}, w, progress)
	if err != nil {
		return nil, createFault(ctx, err)
	}
	return b, nil
}

// Close lets others open the store.
func (r *Rest) Close() error { return r.store.Close() }
