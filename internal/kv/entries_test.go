package kv

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// rowsPerEntry is how many rows an entry of these tests has; all or none of them
// must be found again.
const rowsPerEntry = 3

// entries writes numbered entries into a store and checks what is found again.
type entries struct {
	t     *testing.T
	store *Store
	tx    *Tx
	next  int // number of the next entry
	told  int // entries up to this one were said to be durable
	size  int // bytes of a row
}

func newEntries(t *testing.T, fs vfs.FS, size int) *entries {
	t.Helper()
	s, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return &entries{t: t, store: s, tx: s.NewTx(), size: size}
}

func entryKey(n, row int) []byte { return fmt.Appendf(nil, "entry %06d row %d", n, row) }

// put hands the next entry to the store and does not wait.
func (e *entries) put() (*Pending, error) {
	e.tx.Begin()
	for row := range rowsPerEntry {
		value := fmt.Appendf(make([]byte, 0, e.size+20), "value of %d/%d ", e.next, row)
		for len(value) < e.size {
			value = append(value, byte(e.next))
		}
		e.tx.Put(entryKey(e.next, row), value)
	}
	e.next++
	return e.tx.Commit()
}

// write puts the next entry and waits.
func (e *entries) write() error {
	p, err := e.put()
	if err == nil {
		err = p.Wait()
	}
	if err == nil {
		e.told = e.next
	}
	return err
}

func (e *entries) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *entries) close() {
	e.t.Helper()
	e.must(e.tx.Close())
	e.must(e.store.Close())
}

// holds checks a reader: the first told entries are there, every entry is whole
// or absent, and none is there whose predecessor is not. It returns how many are
// there.
func (e *entries) holds(r Reader) int {
	e.t.Helper()
	found, want := 0, 0
	err := r.Scan([]byte("entry "), []byte("entry~"), false, func(k, v []byte) (bool, error) {
		if string(k) != string(entryKey(want/rowsPerEntry, want%rowsPerEntry)) {
			return false, fmt.Errorf("%q follows %d rows", k, want)
		}
		if prefix := fmt.Sprintf("value of %d/%d ", want/rowsPerEntry, want%rowsPerEntry); string(v[:len(prefix)]) != prefix {
			return false, fmt.Errorf("%q has the value %.20q", k, v)
		}
		want++
		return true, nil
	})
	e.must(err)
	if found = want / rowsPerEntry; want%rowsPerEntry != 0 {
		e.t.Fatalf("entry %d has %d of %d rows", found, want%rowsPerEntry, rowsPerEntry)
	}
	if found < e.told || found > e.next {
		e.t.Fatalf("%d entries are there; %d were said to be durable, %d were written", found, e.told, e.next)
	}
	return found
}

// reopened opens a file system as a new process would and checks it.
func (e *entries) reopened(fs vfs.FS) int {
	e.t.Helper()
	s, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20})
	e.must(err)
	snap := s.NewSnapshot()
	n := e.holds(snap)
	tx := s.NewTx()
	tx.Begin()
	tx.Put([]byte("written after the restart"), []byte("1"))
	p, err := tx.Commit()
	e.must(err)
	e.must(errors.Join(p.Wait(), snap.Close(), tx.Close(), s.Close()))
	return n
}
