package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
)

// rows are all rows of a store.
func rows(t *testing.T, s *kv.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	snap := s.NewSnapshot()
	must(t, snap.Scan(nil, nil, false, func(k, v []byte) (bool, error) {
		all[string(k)] = string(v)
		return true, nil
	}))
	must(t, snap.Close())
	return all
}

func TestARestoredStoreHasExactlyTheRowsOfItsBackup(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	for i := range 60 {
		b.write(fmt.Sprint(i%3), i/3)
		if i == 30 {
			must(t, b.db.Engine().Store().Flush())
		}
	}
	want := rows(t, b.db.Engine().Store())
	content, made := b.archive()
	for _, there := range []bool{false, true} {
		files := vfs.NewCrashableMem()
		if there {
			must(t, files.MkdirAll("to", 0o755))
		}
		seen := ""
		var copied *vfs.MemFS // before anything was changed
		done, err := backup.Restore(t.Context(), from(content), "to", backup.RestoreOptions{
			Files: kv.Options{FS: files}, Expect: made.ID, Now: 1_800_000_000_000,
			Progress: func(step check.Step, done, total int64) {
				if done == total {
					seen += step.Done + ", "
				}
				if step.Unit == check.Rows && copied == nil {
					copied = files.CrashClone(vfs.CrashCloneCfg{})
				}
			},
		})
		must(t, err)
		must(t, copied.Remove("to/RESTORING"))
		first, err := kv.Open("to", kv.Options{FS: copied, CacheBytes: 1 << 20})
		must(t, err)
		got := rows(t, first)
		must(t, first.Close())
		if seen != "verified, restored, checked, " {
			t.Errorf("the steps that ended: %s", seen)
		}
		if done.Earlier != made.Incarnation || done.Incarnation == made.Incarnation || done.Backup.ID != made.ID || !done.Checked {
			t.Errorf("it says %+v", done)
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("row %x is %x, want %x", k, got[k], v)
			}
		}
		if len(got) != len(want) || int64(len(got)) != made.Rows {
			t.Errorf("%d rows, want %d; the manifest says %d", len(got), len(want), made.Rows)
		}
		db := restored(t, files, "to")
		for i := range 3 {
			whole(t, db, fmt.Sprint(i), 20, 20)
		}
	}
}

// turns gives another archive at every opening.
func turns(contents ...[]byte) backup.Open {
	i := -1
	return func(context.Context) (io.ReadCloser, error) {
		i++
		if contents[i] == nil {
			return nil, fault.New(fault.NotFound, "no_backup", "it is gone")
		}
		return io.NopCloser(bytes.NewReader(contents[i])), nil
	}
}

// Whatever ends a restore, its target is as it was.
func TestARestoreThatFailsLeavesNothing(t *testing.T) {
	content, made := small(t)
	b := newBed(t, vfs.NewMem())
	b.write("another", 1)
	other, _ := b.archive()
	changed := bytes.Clone(content)
	changed[len(changed)*3/4] ^= 1
	b.spoil()
	unsound, _ := b.archive()
	for what, c := range map[string]struct {
		open   backup.Open
		o      backup.RestoreOptions
		code   fault.Code
		reason string
	}{
		"another backup":                     {from(other), backup.RestoreOptions{Expect: made.ID}, fault.Conflict, "other_backup"},
		"no backup":                          {turns(nil), backup.RestoreOptions{}, fault.NotFound, "no_backup"},
		"a backup that goes away":            {turns(content, nil), backup.RestoreOptions{}, fault.NotFound, "no_backup"},
		"a backup that is replaced":          {turns(content, other), backup.RestoreOptions{}, fault.Conflict, "other_backup"},
		"a backup that is damaged meanwhile": {turns(content, changed), backup.RestoreOptions{}, fault.Corruption, "damaged_backup"},
		"a backup that is cut meanwhile":     {turns(content, content[:len(content)-50]), backup.RestoreOptions{}, fault.Corruption, "damaged_backup"},
		"a store that does not check":        {from(unsound), backup.RestoreOptions{}, fault.Corruption, "unsound_backup"},
	} {
		for _, there := range []bool{false, true} {
			files := vfs.NewMem()
			if there {
				must(t, files.MkdirAll("to", 0o755))
			}
			before := files.String()
			c.o.Files = kv.Options{FS: files}
			open := c.open
			if there && (what == "no backup" || len(what) > 20 && what[:8] == "a backup") {
				continue // its openings are used up
			}
			_, err := backup.Restore(t.Context(), open, "to", c.o)
			wants(t, what, err, c.code, c.reason)
			if after := files.String(); after != before {
				t.Errorf("%s: from\n%sit became\n%s", what, before, after)
			}
		}
	}
}

func TestARestoreNeedsATargetThatIsMissingOrEmpty(t *testing.T) {
	content, _ := small(t)
	files := vfs.NewMem()
	must(t, files.MkdirAll("full/inner", 0o755))
	o := backup.RestoreOptions{Files: kv.Options{FS: files}}
	opened := 0
	open := func(ctx context.Context) (io.ReadCloser, error) { opened++; return from(content)(ctx) }
	_, err := backup.Restore(t.Context(), open, "full", o)
	wants(t, "a directory with something in it", err, fault.Conflict, "directory_not_empty")
	_, err = backup.Restore(t.Context(), open, "no/where", o)
	wants(t, "a directory in one that is missing", err, fault.Validation, "directory_unusable")
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err = backup.Restore(t.Context(), open, file, backup.RestoreOptions{})
	wants(t, "a file", err, fault.Validation, "directory_unusable")
	dangling := filepath.Join(t.TempDir(), "dangling")
	must(t, os.Symlink(filepath.Join(t.TempDir(), "nowhere"), dangling))
	_, err = backup.Restore(t.Context(), open, dangling, backup.RestoreOptions{})
	wants(t, "a link to nothing", err, fault.Validation, "directory_unusable")
	if opened > 0 {
		t.Errorf("the backup was opened %d times before that was found", opened)
	}
	_, err = backup.Restore(t.Context(), open, "to", o)
	must(t, err)
	_, err = backup.Restore(t.Context(), open, "to", o)
	wants(t, "over a store", err, fault.Conflict, "directory_not_empty")
}

// It ends wherever its context ends, and nothing is left.
func TestARestoreEndsWithItsContextAtEveryStep(t *testing.T) {
	content, _ := small(t)
	for at := int64(0); ; at++ {
		files := vfs.NewMem()
		ctx, cancel := context.WithCancel(t.Context())
		var steps atomic.Int64
		step := func() {
			if steps.Add(1) > at {
				cancel()
			}
		}
		_, err := backup.Restore(ctx, from(content), "to", backup.RestoreOptions{
			Files: kv.Options{FS: files}, Progress: func(check.Step, int64, int64) { step() },
		})
		cancel()
		if err == nil {
			if at < 10 {
				t.Errorf("it has %d steps: the test tests nothing", at)
			}
			return
		}
		wants(t, fmt.Sprintf("after %d steps", at), err, fault.Cancelled, "cancelled")
		absent(t, fmt.Sprintf("after %d steps", at), files, "to")
	}
}

func TestARestoreOntoADiskThatFailsLeavesNothingThatOpensAndCanBeRepeated(t *testing.T) {
	content, _ := small(t)
	for room := int64(0); ; room++ {
		mem := vfs.NewMem()
		var left atomic.Int64
		left.Store(room)
		disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWrite && left.Add(-1) < 0 {
				return errBroken
			}
			return nil
		}))
		_, err := backup.Restore(t.Context(), from(content), "to", backup.RestoreOptions{Files: kv.Options{FS: disk}})
		if err == nil {
			if room < 8 {
				t.Errorf("it writes %d times: the test tests nothing", room)
			}
			return
		}
		wants(t, fmt.Sprintf("with room for %d writes", room), err, fault.RecoveryRequired, "restore_failed")
		absent(t, fmt.Sprintf("with room for %d writes", room), mem, "to")
		_, err = backup.Restore(t.Context(), from(content), "to", backup.RestoreOptions{Files: kv.Options{FS: mem}})
		must(t, err)
	}
}

// stuckLock is a disk that cannot give a lock back.
type stuckLock struct{ vfs.FS }

type stuck struct{ io.Closer }

func (d stuckLock) Lock(name string) (io.Closer, error) {
	held, err := d.FS.Lock(name)
	return stuck{held}, err
}

func (s stuck) Close() error { return errors.Join(s.Closer.Close(), errBroken) }

// Who reads that a restore failed repeats it: that it is there is never told as a
// failure, nor as an end that somebody wished.
func TestARestoreThatIsThereAndNotConfirmedIsNotToldAsAFailedOne(t *testing.T) {
	content, _ := small(t)
	mem := vfs.NewMem()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	disk := errorfs.Wrap(stuckLock{mem}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRemove && op.Path == "to/RESTORING" {
			cancel()
		}
		return nil
	}))
	_, err := backup.Restore(ctx, from(content), "to", backup.RestoreOptions{Files: kv.Options{FS: disk}})
	wants(t, "a lock that cannot be given back", err, fault.RecoveryRequired, "restore_unconfirmed")
	must(t, restored(t, mem, "to").Close())
}
