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

// damageable makes a store with tables, a manifest of several edits and a log of
// several blocks that is not flushed; and the files a changed byte can matter in.
func damageable(t *testing.T) (*vfs.MemFS, *entries, []string) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	e := newEntries(t, mem, 300)
	for range 3 {
		for range 20 {
			e.must(e.write())
		}
		e.must(e.store.Flush())
	}
	e.size = 3000
	for range 15 {
		e.must(e.write())
	}
	names, err := mem.List("db")
	e.must(err)
	slices.Sort(names)
	return mem, e, names
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
	mem, e, names := damageable(t)
	e.close()
	rng := rand.New(rand.NewPCG(1, 2))
	met := map[string]int{}
	for _, name := range names {
		for trial := range 24 {
			fs, size := copyOf(t, mem, name)
			if size == 0 {
				break
			}
			at := rng.IntN(size)
			switch trial { // the ends, where headers and footers are
			case 0, 1, 2, 3, 4:
				at = min(trial*2, size-1)
			case 5, 6, 7, 8:
				at = max(size-1-(trial-5)*7, 0)
			}
			flip(t, fs, name, at)
			if e.notices(fs, fmt.Sprintf("%s with byte %d of %d changed", name, at, size)) {
				met[kindOf(name)]++
			}
		}
	}
	for _, kind := range []string{"sst", "log", "MANIFEST"} {
		if met[kind] == 0 {
			t.Errorf("no damage of any %s was met: the test tests nothing", kind)
		}
	}
}

// The same without Close: only the last entries of the log cannot be told from a
// write that a power loss cut off.
func TestAChangedByteInTheLogOfACrashedStoreIsNoticed(t *testing.T) {
	mem, e, names := damageable(t)
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	e.close()
	log := names[slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, ".log") })]
	for _, n := range names {
		if strings.HasSuffix(n, ".log") && n > log {
			log = n
		}
	}
	_, size := copyOf(t, crashed, log)
	lastEntries := 2 * rowsPerEntry * (e.size + 100)
	for at := 0; at < size-lastEntries; at += 997 {
		fs, _ := copyOf(t, crashed, log)
		flip(t, fs, log, at)
		if !e.notices(fs, fmt.Sprintf("%s with byte %d of %d changed", log, at, size)) {
			t.Errorf("%s, byte %d of %d: nothing was said", log, at, size)
		}
	}
}

func TestAShortenedOrMissingFileIsNoticed(t *testing.T) {
	mem, e, names := damageable(t)
	e.close()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, name := range names {
		if kind := kindOf(name); kind != "sst" && kind != "MANIFEST" {
			continue // a log that ends early is what a power loss leaves
		}
		for trial := range 12 {
			fs, size := copyOf(t, mem, name)
			keep := rng.IntN(size)
			what := fmt.Sprintf("%s cut to %d of %d bytes", name, keep, size)
			if trial == 0 {
				what = name + " removed"
				e.must(fs.Remove("db/" + name))
			} else {
				truncate(t, fs, name, keep)
			}
			if !e.notices(fs, what) {
				t.Errorf("%s: nothing was said", what)
			}
		}
	}
}

// notices says whether damage was reported; a wrong answer fails the test.
func (e *entries) notices(fs vfs.FS, what string) bool {
	e.t.Helper()
	n, err := e.examine(fs)
	switch {
	case errors.Is(err, ErrCorrupt):
		return true
	case err != nil:
		e.t.Errorf("%s: %v", what, err)
	case n != e.next:
		e.t.Errorf("%s: %d of %d entries are there and nothing was said", what, n, e.next)
	}
	return false
}

func copyOf(t *testing.T, mem *vfs.MemFS, name string) (*vfs.MemFS, int) {
	t.Helper()
	info, err := mem.Stat("db/" + name)
	if err != nil {
		t.Fatal(err)
	}
	all := vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))}
	return mem.CrashClone(all), int(info.Size())
}

func flip(t *testing.T, fs *vfs.MemFS, name string, at int) {
	t.Helper()
	data, err := fs.UnsafeGetFileDataBuffer("db/" + name)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1 << (at % 8)
}

func truncate(t *testing.T, fs *vfs.MemFS, name string, keep int) {
	t.Helper()
	data, err := fs.UnsafeGetFileDataBuffer("db/" + name)
	if err != nil {
		t.Fatal(err)
	}
	kept := slices.Clone(data[:keep])
	f, err := fs.Create("db/"+name, "unspecified")
	if err == nil {
		_, err = f.Write(kept)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// kindOf is what a file's name says of it: sst, log, MANIFEST, ….
func kindOf(name string) string {
	if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log") {
		return name[len(name)-3:]
	}
	return strings.TrimRight(strings.Split(name, ".")[0], "-0123456789")
}

// twoTables makes a store whose two tables hold rows of the same range, and
// changes a byte in the middle of one of them.
func twoTables(t *testing.T) *entries {
	t.Helper()
	mem := vfs.NewCrashableMem()
	e := newEntries(t, mem, 300)
	for range 2 {
		for range 40 {
			e.must(e.write())
		}
		e.tx.Begin()
		e.tx.Put([]byte("a"), []byte("in both"))
		e.tx.Put([]byte("z"), []byte("in both"))
		p, err := e.tx.Commit()
		e.must(err)
		e.must(errors.Join(p.Wait(), e.store.Flush()))
	}
	e.close()
	names, err := mem.List("db")
	e.must(err)
	slices.Sort(names)
	first := names[slices.IndexFunc(names, func(n string) bool { return kindOf(n) == "sst" })]
	_, size := copyOf(t, mem, first)
	flip(t, mem, first, size/4)
	e.store, err = Open("db", Options{FS: mem, CacheBytes: 1 << 20})
	e.must(err)
	e.tx = e.store.NewTx()
	return e
}

func TestDamageThatAReadMeetsIsTheAnswerOfThatReadAlone(t *testing.T) {
	e := twoTables(t)
	snap := e.store.NewSnapshot()
	damaged := 0
	for i := range 40 {
		if _, _, err := snap.Get(entryKey(i, 0)); errors.Is(err, ErrCorrupt) {
			damaged++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if damaged == 0 {
		t.Fatal("no read met the damage: the test tests nothing")
	}
	for i := 40; i < 80; i++ {
		if _, ok, err := snap.Get(entryKey(i, 0)); err != nil || !ok {
			t.Errorf("a row elsewhere: %v, %v", ok, err)
		}
	}
	if err := e.store.Err(); err != nil {
		t.Errorf("the store stopped: %v", err)
	}
	e.must(e.write())
	e.must(snap.Close())
	e.close()
}

func TestDamageThatACompactionMeetsStopsTheStore(t *testing.T) {
	e := twoTables(t)
	err := e.store.Compact([]byte("a"), []byte("zz"))
	if !errors.Is(err, ErrCorrupt) || !errors.Is(e.store.Err(), ErrCorrupt) || !errors.Is(e.store.Err(), ErrFailed) {
		t.Errorf("the compaction says %v, the store %v", err, e.store.Err())
	}
	if err := e.write(); !errors.Is(err, ErrFailed) {
		t.Errorf("a write says %v", err)
	}
	e.close()
}

func TestAMarkIsReadBackAndNothingElseIsTakenForOne(t *testing.T) {
	batch := func(op ...byte) []byte { return append(make([]byte, 12), op...) }
	m := mark{300, 1 << 40, 7, 0}
	encoded := m.append(nil)
	record := batch(append([]byte{3, byte(len(encoded))}, encoded...)...)
	if got, ok := markOf(append(record, "a row"...)); !ok || got != m {
		t.Errorf("it came back as %+v, %v", got, ok)
	}
	for n := range record {
		if got, ok := markOf(record[:n]); ok {
			t.Errorf("%d of its %d bytes were taken for %+v", n, len(record), got)
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		markOf(b)
		if got, ok := markOf(batch(append([]byte{1}, b...)...)); ok {
			t.Errorf("a write was taken for %+v", got)
		}
		markOf(batch(append([]byte{3}, b...)...)) // does not panic
	}
}
