package kv

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logsOf are the logs of a store in a real directory.
func logsOf(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%v, %v", found, err)
	}
	return found
}

// What is reserved ahead is never taken for an entry, also by a store that was
// killed and not closed.
func TestTheLogIsMadeLongerAheadOfWhatIsWritten(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems lengthen it in smaller steps")
	}
	dir := filepath.Join(t.TempDir(), "db")
	store, err := Open(dir, Options{CacheBytes: 1 << 20})
	must(t, err)
	tx := store.NewTx()
	const entries = 20
	for i := range entries {
		tx.Begin()
		tx.Put([]byte{'k', byte(i)}, bytes.Repeat([]byte{'v'}, 300))
		p, err := tx.Commit()
		must(t, err)
		must(t, p.Wait())
	}
	data, err := os.ReadFile(logsOf(t, dir)[0])
	must(t, err)
	written := len(bytes.TrimRight(data, "\x00"))
	if len(data) != logStep || written == 0 || written > logStep/2 {
		t.Errorf("the log is %d bytes long with %d written, want %d", len(data), written, logStep)
	}
	killed := filepath.Join(t.TempDir(), "killed")
	must(t, os.CopyFS(killed, os.DirFS(dir)))
	must(t, tx.Close())
	must(t, store.Close())
	store, err = Open(killed, Options{CacheBytes: 1 << 20})
	must(t, err)
	snap := store.NewSnapshot()
	for i := range entries {
		if _, ok, err := snap.Get([]byte{'k', byte(i)}); err != nil || !ok {
			t.Errorf("after a kill entry %d is there: %v, %v", i, ok, err)
		}
	}
	must(t, snap.Close())
	must(t, store.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestALogGrowsByWholeStepsAndNeverShrinks(t *testing.T) {
	mem := vfs.NewMem()
	f, err := mem.Create("000001.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	w := &written{File: f, disk: &disk{FS: mem, store: &Store{}}, log: true}
	for _, c := range []struct {
		size uint64
		next int
		want uint64
	}{
		{0, 1, zeroStep}, {0, zeroStep, zeroStep}, {0, zeroStep + 1, 2 * zeroStep}, {zeroStep, 1, 2 * zeroStep},
		{2*zeroStep - 1, 1, 2 * zeroStep}, {2*zeroStep - 1, 2, 3 * zeroStep},
	} {
		w.size.Store(c.size)
		w.reserve(c.next)
		info, err := f.Stat()
		if err != nil || uint64(info.Size()) != c.want || w.length != c.want {
			t.Errorf("%d bytes and %d more: the file is %d long, %d noted, want %d (%v)", c.size, c.next, info.Size(), w.length, c.want, err)
		}
	}
}
