package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func openUnsynced(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open("db", Options{FS: fs, NoSync: true, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keysOf(t *testing.T, s *Store) (keys []string) {
	t.Helper()
	snap := s.NewSnapshot()
	defer snap.Close()
	if err := snap.Scan(nil, nil, false, func(k, _ []byte) (bool, error) { keys = append(keys, string(k)); return true, nil }); err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestABatchTakesEffectInTheOrderOfItsWrites(t *testing.T) {
	s := openUnsynced(t, vfs.NewMem())
	defer s.Close()
	b := NewBatch(s)
	if !b.Empty() {
		t.Error("a new batch is not empty")
	}
	for _, k := range []string{"a", "b", "c", "d"} {
		b.Set([]byte(k), []byte("1"))
	}
	b.DeleteRange([]byte("b"), []byte("d"))
	b.Set([]byte("c"), []byte("2"))
	b.Delete([]byte("a"))
	if err := b.Commit(true); err != nil || b.rows == 0 {
		t.Fatal(err)
	}
	if got := fmt.Sprint(keysOf(t, s)); got != "[c d]" {
		t.Errorf("got %s", got)
	}
	b = NewBatch(s)
	b.Set([]byte("x"), nil)
	if err := b.Drop(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(keysOf(t, s)); got != "[c d]" {
		t.Errorf("a dropped batch left %s", got)
	}
}

// Batches and entries that were not synced are lost from their end on; what was
// there before a synced batch, or before Sync, never is.
func TestAPowerLossLeavesAPrefixOfWhatWasNotSynced(t *testing.T) {
	for _, percent := range []int{0, 40, 100} {
		for seed := range uint64(6) {
			rng := rand.New(rand.NewPCG(seed, uint64(percent)))
			mem := vfs.NewCrashableMem()
			s := openUnsynced(t, mem)
			tx, kept := s.NewTx(), 0
			value := bytes.Repeat([]byte{'v'}, []int{10, 3000, 40_000}[rng.IntN(3)])
			count := 20 + rng.IntN(30)
			for i := range count {
				key := fmt.Appendf(nil, "%04d", i)
				var err error
				switch rng.IntN(4) {
				case 0:
					b := NewBatch(s)
					b.Set(key, value)
					err = b.Commit(true)
					kept = i + 1
				case 1:
					b := NewBatch(s)
					b.Set(key, value)
					err = b.Commit(false)
				case 2:
					tx.Begin()
					tx.Put(key, value)
					_, err = tx.Commit()
				default:
					tx.Begin()
					tx.Put(key, value)
					if _, err = tx.Commit(); err == nil {
						err = Sync(s)
						kept = i + 1
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			left := openUnsynced(t, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
			keys := keysOf(t, left)
			for i, k := range keys {
				if k != fmt.Sprintf("%04d", i) {
					t.Fatalf("at %d percent, seed %d: %s stands where %04d must", percent, seed, k, i)
				}
			}
			if len(keys) < kept {
				t.Errorf("at %d percent, seed %d: %d of %d that were synced are left", percent, seed, len(keys), kept)
			}
			if err := errors.Join(left.Close(), s.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestABatchOfAStoreThatFailedIsRefused(t *testing.T) {
	s := openUnsynced(t, vfs.NewMem())
	s.fail(errors.New("no room"))
	b := NewBatch(s)
	b.Set([]byte("a"), nil)
	if err := b.Commit(true); !errors.Is(err, ErrFailed) {
		t.Errorf("Commit: %v", err)
	}
	if err := Sync(s); !errors.Is(err, ErrFailed) {
		t.Errorf("Sync: %v", err)
	}
	if got := keysOf(t, s); len(got) != 0 {
		t.Errorf("%v was written", got)
	}
	s.Close()
}

func TestAFileThatWasMadeSurvivesAPowerLossAndOneThatFailedIsGone(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openUnsynced(t, mem)
	files, err := NewFiles(s, "spool")
	if err != nil {
		t.Fatal(err)
	}
	fill := func(w io.Writer) error { _, err := w.Write([]byte("all of it")); return err }
	if err := files.Create("kept", fill); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := files.Create("failed", func(w io.Writer) error { fill(w); return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	left := openUnsynced(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	again, err := NewFiles(left, "spool")
	if err != nil {
		t.Fatal(err)
	}
	if names, err := again.Names(); err != nil || fmt.Sprint(names) != "[kept]" {
		t.Errorf("left are %v, %v", names, err)
	}
	r, err := again.Open("kept")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != "all of it" {
		t.Errorf("read %q, %v", b, err)
	}
	if err := errors.Join(r.Close(), again.Remove("kept"), again.Remove("kept")); err != nil {
		t.Error(err)
	}
	if _, err := again.Open("kept"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file: %v", err)
	}
	if err := errors.Join(left.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}
