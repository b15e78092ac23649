package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/system"
)

// RestoreOptions say how a store is made out of an archive.
type RestoreOptions struct {
	// Expect is the id that was noted when the backup was made; "" takes any.
	Expect string
	// SkipCheck leaves out the proof that every rule of the store holds, which is made
	// before anything in it is changed.
	SkipCheck bool
	// AllowIntake lets callers publish and enqueue while dispatch is paused.
	AllowIntake bool
	// Now is the instant of the restore in milliseconds; 0 is the machine's clock.
	Now int64
	// Files are the options the store is opened with; the zero value is the disk.
	Files kv.Options
	// Progress is told how far it is; nil for nobody.
	Progress check.Progress
}

// Restored is what a store was made of, and what became of it.
type Restored struct {
	Backup  *Backup `json:"backup"`
	Dir     string  `json:"dir"`
	Checked bool    `json:"checked"` // whether every rule was verified
	// Replaced is the id of the backup of which an unfinished restore was found in Dir
	// and removed, as far as it is known.
	Replaced string `json:"replaced,omitzero"`
	engine.Restored
}

// Open opens an archive from its beginning. A restore reads it twice.
type Open func(ctx context.Context) (io.ReadCloser, error)

// Restore makes the store of an archive in dir, which must be missing or empty. It
// reads and verifies the whole archive before it writes anything, and verifies it
// again while it writes; then it checks the store. The store is a new incarnation: dispatch and every group
// are paused, and tokens, cursors and receipts of before hold no more. Until the last step nothing in dir opens as a store,
// whatever happens to this process, and a repeat of the same restore begins anew.
// Errors are *fault.Error: those of Verify; Conflict (reasons
// directory_not_empty, foreign_files, store_in_use), Validation (reason directory_unusable),
// ResourceExhausted (reason no_room), RecoveryRequired when the disk fails. After
// an error nothing is left, or what the next restore removes; only after the reason
// restore_unconfirmed the store may be there, and is whole if it opens.
func Restore(ctx context.Context, open Open, dir string, o RestoreOptions) (*Restored, error) {
	if err := kv.Restorable(dir, o.Files); err != nil {
		return nil, beginFault(dir, err)
	}
	b, err := verified(ctx, open, o)
	if err != nil {
		return nil, err
	}
	files := o.Files
	files.Of = b.ID
	r, err := kv.BeginRestore(dir, b.Bytes, files)
	if err != nil {
		return nil, beginFault(dir, err)
	}
	done := &Restored{Backup: b, Dir: dir, Checked: !o.SkipCheck, Replaced: r.Before()}
	done.Restored, err = restore(ctx, open, r, b, o)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = errors.Join(err, r.Abort())
	} else {
		err = r.Publish()
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, kv.ErrUnconfirmed) {
			return nil, ended(cause)
		}
		return nil, restoreFault(dir, err)
	}
	return done, nil
}

// verified is the first reading.
func verified(ctx context.Context, open Open, o RestoreOptions) (*Backup, error) {
	if err := mayBeID(o.Expect); err != nil {
		return nil, err
	}
	r, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close() // it is only read
	a, err := openArchive(ctx, r)
	if err != nil {
		return nil, err
	}
	defer a.close()
	if err := a.expected(o.Expect); err != nil {
		return nil, err
	}
	if a.StoreFormat > system.Format {
		return nil, fault.New(fault.FormatUnsupported, "newer_format",
			"the store in the backup has format %d; this program knows formats up to %d. Use the program that wrote it, or a newer one", a.StoreFormat, system.Format)
	}
	err = a.each(bytesVerified, o.Progress, func(_ File, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &a.Backup, nil
}

// restore fills a directory that nobody can open.
func restore(ctx context.Context, open Open, r *kv.Restoring, b *Backup, o RestoreOptions) (done engine.Restored, err error) {
	if err := unpack(ctx, open, r, b, o.Progress); err != nil {
		return done, err
	}
	s, err := r.Open()
	if err != nil {
		return done, err
	}
	err = examine(ctx, s, b, o)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		now := o.Now
		if now == 0 {
			now = time.Now().UnixMilli()
		}
		done, err = engine.Restore(ctx, s, engine.RestoreOptions{Now: now, AllowIntake: o.AllowIntake})
	}
	if failed := s.Err(); failed != nil {
		err = failed // says what happened, not what it meant for a command
	}
	return done, errors.Join(err, s.Close())
}

// unpack is the second reading: of the same archive, to the byte.
func unpack(ctx context.Context, open Open, to *kv.Restoring, b *Backup, progress check.Progress) error {
	r, err := open(ctx)
	if err != nil {
		return err
	}
	defer r.Close() // it is only read
	a, err := openArchive(ctx, r)
	if err != nil {
		return err
	}
	defer a.close()
	if a.ID != b.ID {
		return fault.New(fault.Conflict, "other_backup", "the backup was replaced while it was restored: it is %s now, and was %s", a.ID, b.ID)
	}
	return a.each(bytesRestored, progress, func(f File, content io.Reader) error { return to.Write(f.Name, content) })
}

// examine compares the store with the manifest, and checks it.
func examine(ctx context.Context, s *kv.Store, b *Backup, o RestoreOptions) error {
	found := &Manifest{}
	snap := s.NewSnapshot()
	fit, err := engine.FitTogether(snap, uint16(b.DataShards), false)
	if err := errors.Join(err, describe(snap, found), snap.Close()); err != nil {
		return err
	}
	if found.Incarnation != b.Incarnation || found.StoreFormat != b.StoreFormat || found.CatalogRevision != b.CatalogRevision ||
		!slices.Equal(found.Shards, b.Shards) {
		return damaged("the store in it is not the one that its manifest describes")
	}
	if !fit {
		return damaged("the shards of the store in it are of different moments, and do not fit together")
	}
	if o.SkipCheck {
		return nil
	}
	r, err := check.Store(ctx, s, o.Progress)
	switch {
	case err != nil:
		return err
	case len(r.Findings) > 0:
		f := r.Findings[0]
		return fault.New(fault.Corruption, "unsound_backup",
			"the store in the backup breaks its rules, %d times; the first one is %s, %s: %s", int64(len(r.Findings))+r.More, f.Invariant, f.Where, f.Text)
	case r.Rows != b.Rows:
		return damaged("the store in it has %d rows, and its manifest says %d", r.Rows, b.Rows)
	}
	return nil
}

// beginFault is restoreFault for what kept a restore from beginning.
func beginFault(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || kv.Unusable(err) {
		return fault.New(fault.Validation, "directory_unusable", "%s cannot be made or used: %v. Nothing was changed", dir, err)
	}
	return restoreFault(dir, err)
}

// restoreFault turns what ended a restore into the contract's codes.
func restoreFault(dir string, err error) error {
	switch {
	case fault.From(err) != nil:
		return fault.From(err)
	case errors.Is(err, kv.ErrUnconfirmed):
		return fault.New(fault.RecoveryRequired, "restore_unconfirmed",
			"all of the restore was done, but the disk did not confirm its last step: %v. Look at the disk, then open %s: if it opens, it is the whole restored store and nothing is to be repeated; if a restore into it was not finished, repeat the restore", err, dir)
	case errors.Is(err, kv.ErrNotEmpty):
		return fault.New(fault.Conflict, "directory_not_empty", "%s is not empty; a backup is restored into a missing or empty directory. Nothing was changed", dir)
	case errors.Is(err, kv.ErrForeign):
		return fault.New(fault.Conflict, "foreign_files", "a restore into %s was begun and not finished, and beside what it left there is something else: %v. Nothing was changed; move it away, then repeat the restore", dir, err)
	case errors.Is(err, kv.ErrLocked):
		return fault.New(fault.Conflict, "store_in_use", "another process restores into %s, or has it open", dir)
	case errors.Is(err, kv.ErrNoRoom):
		return fault.New(fault.ResourceExhausted, "no_room", "nothing was restored: %v", err)
	case errors.Is(err, kv.ErrCorrupt):
		return fault.New(fault.Corruption, "damaged_backup", "the store in the backup does not open: %v", err)
	}
	return fault.New(fault.RecoveryRequired, "restore_failed", "the restore was not finished, and %s does not open as a store: %v. The same restore can be repeated", dir, err)
}
