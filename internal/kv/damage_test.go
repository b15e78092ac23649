package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// damageable makes a closed store with tables, a manifest of several edits and a
// log that is not flushed.
func damageable(t *testing.T) (*vfs.MemFS, *entries) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	e := newEntries(t, mem, 300)
	for range 4 {
		for range 30 {
			e.must(e.write())
		}
		e.must(e.store.Flush())
	}
	for range 30 {
		e.must(e.write())
	}
	e.close()
	return mem, e
}

// kind is what a file's name says of it: table, log, manifest, ….
func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, ".sst"), strings.HasSuffix(name, ".log"):
		return name[len(name)-3:]
	default:
		return strings.TrimRight(strings.Split(name, ".")[0], "-0123456789")
	}
}

// examine opens a damaged copy and reads everything. It answers how many entries
// are there, or the first error.
func (e *entries) examine(fs vfs.FS) (n int, err error) {
	s, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	snap := s.NewSnapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	rows := 0
	err = snap.Scan([]byte("entry "), []byte("entry~"), false, func(k, v []byte) (bool, error) {
		if string(k) != string(entryKey(rows/rowsPerEntry, rows%rowsPerEntry)) || !strings.HasPrefix(string(v), fmt.Sprintf("value of %d/%d ", rows/rowsPerEntry, rows%rowsPerEntry)) {
			return false, fmt.Errorf("a wrong answer: %q has the value %.20q", k, v)
		}
		rows++
		return true, nil
	})
	for i := 0; i < e.next && err == nil; i++ { // point reads use other blocks than scans
		_, ok, gerr := snap.Get(entryKey(i, 0))
		if err = gerr; err == nil && !ok {
			err = fmt.Errorf("a wrong answer: entry %d is absent", i)
		}
	}
	return rows / rowsPerEntry, err
}

// A byte of any file is changed: the store refuses to open, or the read that
// meets it fails, as damage — or nothing is missing. Never is less there without
// a word.
func TestAChangedByteIsNeverPassedOverInSilence(t *testing.T) {
	mem, e := damageable(t)
	names, err := mem.List("db")
	e.must(err)
	slices.Sort(names)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range names {
		size := fileSize(t, mem, name)
		met := 0
		for trial := 0; trial < 60 && size > 0; trial++ {
			at := rng.IntN(size)
			if trial < 8 {
				at = min(trial, size-1)
			} else if trial < 16 {
				at = max(size-1-(trial-8), 0)
			}
			fs := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
			flip(t, fs, name, at, byte(1)<<rng.IntN(8))
			switch n, err := e.examine(fs); {
			case errors.Is(err, ErrCorrupt):
				met++
			case err != nil:
				t.Errorf("%s, byte %d of %d: %v", name, at, size, err)
			case n != e.next:
				t.Errorf("%s, byte %d of %d: %d of %d entries are there and nothing was said", name, at, size, n, e.next)
			}
		}
		t.Logf("%s (%s): %d of 60 met", name, kindOf(name), met)
	}
}

func fileSize(t *testing.T, fs *vfs.MemFS, name string) int {
	t.Helper()
	info, err := fs.Stat("db/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

func flip(t *testing.T, fs *vfs.MemFS, name string, at int, bit byte) {
	t.Helper()
	data, err := fs.UnsafeGetFileDataBuffer("db/" + name)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= bit
}
