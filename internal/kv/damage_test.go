package kv

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// damageable makes a store with tables, a manifest of several edits and a log of
// several blocks that is not flushed, whose process was killed; sealed says that
// it had begun to close.
func damageable(t *testing.T, sealed bool) (*vfs.MemFS, *entries) {
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
	if sealed {
		e.must(e.store.seal())
	}
	killed := mem.CrashClone(vfs.CrashCloneCfg{})
	e.close()
	return killed, e
}

// files names the files of a store that nobody has open.
func files(t *testing.T, mem *vfs.MemFS) []string {
	t.Helper()
	names, err := mem.List("db")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
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

// A store that was closed needs nothing of its logs.
func TestDamageToTheLogsOfAClosedStoreLosesNothing(t *testing.T) {
	mem := vfs.NewCrashableMem()
	e := newEntries(t, mem, 300)
	for range 20 {
		e.must(e.write())
	}
	e.close()
	for _, name := range files(t, mem) {
		if kindOf(name) != "log" {
			continue
		}
		fs, size := copyOf(t, mem, name)
		for at := 0; at < size; at += 101 {
			flip(t, fs, name, at)
		}
		if n, err := e.examine(fs); err != nil && !errors.Is(err, ErrCorrupt) || err == nil && n != e.next {
			t.Errorf("%s: %d of %d entries (%v)", name, n, e.next, err)
		}
		cut, _ := copyOf(t, mem, name)
		e.must(cut.Remove("db/" + name))
		if n, err := e.examine(cut); err != nil || n != e.next {
			t.Errorf("without %s: %d of %d entries (%v)", name, n, e.next, err)
		}
	}
}

// A byte of any file is changed: the store refuses to open, or the read that
// meets it fails, as damage — or nothing is missing. Never is less there without
// a word.
func TestAChangedByteIsNeverPassedOverInSilence(t *testing.T) {
	mem, e := damageable(t, true)
	rng := rand.New(rand.NewPCG(1, 2))
	met := map[string]int{}
	for _, name := range files(t, mem) {
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

// In a log that was not sealed only the last entries cannot be told from a write
// that a power loss cut off.
func TestAChangedByteInTheLogOfACrashedStoreIsNoticed(t *testing.T) {
	crashed, e := damageable(t, false)
	log := ""
	for _, n := range files(t, crashed) {
		if strings.HasSuffix(n, ".log") {
			log = n // the newest comes last
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
	mem, e := damageable(t, true)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, name := range files(t, mem) {
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

// copyOf is all that is on the disk, and how much was written to one file: a log
// is longer than that, by zeros.
func copyOf(t *testing.T, mem *vfs.MemFS, name string) (*vfs.MemFS, int) {
	t.Helper()
	data, err := mem.UnsafeGetFileDataBuffer("db/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if kindOf(name) == "log" {
		data = bytes.TrimRight(data, "\x00")
	}
	all := vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))}
	return mem.CrashClone(all), len(data)
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

// halfDamaged makes a store in which every table, of the first 40 entries, has a
// changed byte, and the next 40 are not flushed yet.
func halfDamaged(t *testing.T) *entries {
	t.Helper()
	mem := vfs.NewCrashableMem()
	e := newEntries(t, mem, 300)
	for range 40 {
		e.must(e.write())
	}
	e.must(e.store.Flush())
	e.close()
	for _, name := range files(t, mem) {
		if kindOf(name) == "sst" {
			_, size := copyOf(t, mem, name)
			flip(t, mem, name, size/4)
		}
	}
	var err error
	e.store, err = Open("db", Options{FS: mem, CacheBytes: 1 << 20})
	e.must(err)
	e.tx = e.store.NewTx()
	for range 40 {
		e.must(e.write())
	}
	return e
}

func TestDamageThatAReadMeetsIsTheAnswerOfThatReadAlone(t *testing.T) {
	e := halfDamaged(t)
	var log bytes.Buffer
	e.store.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	snap := e.store.NewSnapshot()
	damaged, said := 0, ""
	for i := range e.next {
		switch _, ok, err := snap.Get(entryKey(i, 0)); {
		case errors.Is(err, ErrCorrupt):
			damaged++
			said = err.Error()
		case err != nil || !ok:
			t.Errorf("entry %d: %v, %v", i, ok, err)
		}
	}
	if damaged == 0 || damaged > 40 {
		t.Errorf("%d of 40 damaged entries were met", damaged)
	}
	if !strings.Contains(said, "checksum mismatch") || strings.ContainsAny(said, "<\n") {
		t.Errorf("it says %q", said)
	}
	if text := log.String(); strings.Count(text, "damage in db/") == 0 || strings.Contains(text, "bounds") || strings.Contains(text, ".go:") {
		t.Errorf("the log has %.1000q", text)
	}
	e.must(e.write())
	e.must(e.store.Err())
	e.must(snap.Close())
	e.close()
}

// Otherwise the compaction would be tried for ever, tables would pile up, and
// writes would hang in the end.
func TestDamageThatACompactionMeetsStopsTheStore(t *testing.T) {
	e := halfDamaged(t)
	e.tx.Begin()
	e.tx.Put(entryKey(0, 0), []byte("over what is damaged"))
	e.tx.Put(entryKey(39, 2), []byte("over what is damaged"))
	p, err := e.tx.Commit()
	e.must(err)
	e.must(p.Wait())
	err = e.store.Compact([]byte("a"), []byte("z")) // or one that Pebble began by itself
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
