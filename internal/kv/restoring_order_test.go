package kv

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// lockedDisk gives locks of which it tells when they are given back.
type lockedDisk struct {
	vfs.FS
	released func() error
}

func (d lockedDisk) Lock(name string) (io.Closer, error) {
	held, err := d.FS.Lock(name)
	return heldLock{held, d.released}, err
}

type heldLock struct {
	io.Closer
	released func() error
}

func (l heldLock) Close() error { return errors.Join(l.Closer.Close(), l.released()) }

// told is a disk on which each removal and each sync is told of by a line.
func told(disk vfs.FS, tell func(line string)) vfs.FS {
	kinds := map[errorfs.OpKind]string{
		errorfs.OpRemove: "remove ", errorfs.OpRemoveAll: "remove ", errorfs.OpFileSync: "sync ", errorfs.OpCreate: "make ",
	}
	watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if kind := kinds[op.Kind]; kind != "" {
			tell(kind + op.Path)
		}
		return nil
	})
	return lockedDisk{errorfs.Wrap(disk, watch), func() error { tell("unlock"); return nil }}
}

// A disk may lose any removals that were not synced and keep others: the mark must
// not go before that the files are gone is durable.
func TestAnAbortRemovesTheMarkOnceThatTheFilesAreGoneIsDurable(t *testing.T) {
	for made, want := range map[bool][]string{
		true: {
			"remove home/db/000001.sst", "remove home/db/MANIFEST-000002", "sync home/db", "remove home/db/RESTORING",
			"remove home/db/LOCK", "remove home/db", "sync home", "unlock",
		},
		false: {
			"remove home/db/000001.sst", "remove home/db/MANIFEST-000002", "sync home/db", "remove home/db/RESTORING",
			"remove home/db/LOCK", "sync home/db", "unlock",
		},
	} {
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("home", 0o755))
		if !made {
			must(t, mem.MkdirAll("home/db", 0o755))
		}
		var lines []string
		r, err := BeginRestore("home/db", 0, Options{FS: told(mem, func(line string) { lines = append(lines, line) })})
		must(t, err)
		must(t, r.Write("000001.sst", io.LimitReader(zeros{}, 9)))
		must(t, r.Write("MANIFEST-000002", io.LimitReader(zeros{}, 9)))
		lines = nil
		must(t, r.Abort())
		if files := lines[:min(2, len(lines))]; len(files) == 2 {
			slices.Sort(files)
		}
		if !slices.Equal(lines, want) {
			t.Errorf("made for it: %v: in this order:\n%q\nwant\n%q", made, lines, want)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// The mark of an unfinished restore may be one whose making was refused by the
// disk half-way: it is made durable before what it guards goes.
func TestARestoreThatBeginsAnewMakesTheMarkDurableBeforeItRemovesAnything(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("db", 0o755))
	for _, name := range []string{"db/RESTORING", "db/000001.sst"} {
		f, err := mem.Create(name, vfs.WriteCategoryUnspecified)
		must(t, errors.Join(err, f.Close()))
	}
	var lines []string
	r, err := BeginRestore("db", 0, Options{FS: told(mem, func(line string) { lines = append(lines, line) })})
	must(t, err)
	want := []string{"sync db", "remove db/000001.sst", "make db/RESTORING", "sync db/RESTORING", "sync db", "sync ."}
	if !slices.Equal(lines, want) {
		t.Errorf("in this order:\n%q\nwant\n%q", lines, want)
	}
	must(t, r.Abort())
}

// Nobody takes a store that is whole for one that is not: who is told that a
// restore failed would do it again, over a store that is in use.
func TestARestoreOfWhichOnlyTheEndIsUncertainSaysSo(t *testing.T) {
	a := archive(t)
	for name, c := range map[string]struct {
		unlock error
		fails  []errorfs.OpKind // once the mark was removed
		opens  error
	}{
		"the lock is not given back": {unlock: errDisk},
		"the removal of the mark is not synced, and the mark not made again": {
			fails: []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpCreate},
		},
		"the mark is made again and not synced": {fails: []errorfs.OpKind{errorfs.OpFileSync}, opens: ErrUnfinished},
	} {
		mem := vfs.NewMem()
		var lines []string
		watched := told(mem, func(line string) { lines = append(lines, line) })
		broken := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if slices.Contains(lines, "remove db/RESTORING") && slices.Contains(c.fails, op.Kind) {
				return errDisk
			}
			return nil
		})
		disk := lockedDisk{errorfs.Wrap(watched, broken), func() error { return c.unlock }}
		if err := a.restoreTo(disk, "db"); !errors.Is(err, ErrUnconfirmed) || !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", name, err)
		}
		if err := a.opened(t, mem, "db"); !errors.Is(err, c.opens) {
			t.Errorf("%s: opening says %v", name, err)
		}
	}
}
