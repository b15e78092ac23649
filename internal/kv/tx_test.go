package kv

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func openMem(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newTx(t *testing.T, s *Store) *Tx {
	t.Helper()
	tx := s.NewTx()
	t.Cleanup(func() {
		if err := tx.Close(); err != nil {
			t.Error(err)
		}
	})
	tx.Begin()
	return tx
}

func commit(t *testing.T, tx *Tx) *Pending {
	t.Helper()
	p, err := tx.Commit()
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	tx.Begin()
	return p
}

func text(t *testing.T, r Reader, key string) string {
	t.Helper()
	v, ok, err := r.Get([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "absent"
	}
	return string(v)
}

func panics(t *testing.T, what string, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s was let through", what)
		}
	}()
	fn()
}

func TestARowInsertedAndDeletedInOneEntryNeverReachesTheStore(t *testing.T) {
	tx := newTx(t, openMem(t, vfs.NewMem()))
	for i := range 5 {
		tx.Insert([]byte(fmt.Sprint("row", i)), []byte("v"))
	}
	tx.Begin()
	for i := range 5 {
		tx.Delete([]byte(fmt.Sprint("row", i)))
	}
	tx.Begin()
	tx.Put([]byte("other"), []byte("v"))
	if p := commit(t, tx); p.Rows != 1 {
		t.Errorf("%d rows reached the store, want 1", p.Rows)
	}
	tx.Put([]byte("put"), []byte("v"))
	tx.Delete([]byte("put")) // might be in the store, for all the transaction knows
	if p := commit(t, tx); p.Rows != 1 {
		t.Errorf("the deletion of a row that was put left %d rows, want 1", p.Rows)
	}
}

func TestAnInsertWithoutAValueIsAProgrammingError(t *testing.T) {
	tx := newTx(t, openMem(t, vfs.NewMem()))
	panics(t, "a nil insert", func() { tx.Insert([]byte("k"), nil) })
}

func TestAnEmptyValueIsARowAndNoDeletion(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	tx := newTx(t, s)
	tx.Put([]byte("k"), []byte{})
	commit(t, tx)
	if got := text(t, newTx(t, s), "k"); got != "" {
		t.Errorf("an empty row reads as %s", got)
	}
}

func TestWritesAndScansWithinAScanAreProgrammingErrors(t *testing.T) {
	tx := newTx(t, openMem(t, vfs.NewMem()))
	tx.Put([]byte("a"), []byte("1"))
	each := func(fn func()) {
		panics(t, "a use of the transaction within its scan", func() {
			_ = tx.Scan(nil, nil, false, func(_, _ []byte) (bool, error) { fn(); return true, nil })
		})
	}
	each(func() { tx.Put([]byte("b"), []byte("1")) })
	each(func() { tx.PutDecoded([]byte("b"), &row{"1"}, encodeRow) })
	each(func() { tx.Insert([]byte("b"), []byte("1")) })
	each(func() { tx.Delete([]byte("a")) })
	each(func() { _ = tx.Scan(nil, nil, false, func(_, _ []byte) (bool, error) { return true, nil }) })
	tx.Put([]byte("b"), []byte("2")) // the scans are over, whatever ended them
	if got := text(t, tx, "b"); got != "2" {
		t.Errorf("after the scans b reads as %s", got)
	}
}

func TestAScanEndsWithTheErrorOfItsCallback(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	tx := newTx(t, s)
	tx.Put([]byte("a"), []byte("1"))
	commit(t, tx)
	snap := s.NewSnapshot()
	defer snap.Close()
	for _, r := range []Reader{tx, snap} {
		stop := fmt.Errorf("stop")
		if err := r.Scan(nil, nil, false, func(_, _ []byte) (bool, error) { return true, stop }); err != stop {
			t.Errorf("%T: the scan ended with %v", r, err)
		}
	}
}

func TestAHotRowIsReadAndDecodedOncePerVersion(t *testing.T) {
	tx := newTx(t, openMem(t, vfs.NewMem()))
	key, decodes := []byte("k"), 0
	decode := func(b []byte) (any, error) { decodes++; return decodeRow(b) }
	shared := func(want string) any {
		t.Helper()
		d, err := tx.Shared(key, decode)
		if err != nil || d == nil || d.(*row).text != want {
			t.Fatalf("the row reads as %v (%v), want %s", d, err, want)
		}
		return d
	}
	tx.Put(key, []byte("1"))
	commit(t, tx)
	gets := tx.Work().Gets
	first := shared("1")
	for range 3 {
		if shared("1") != first {
			t.Error("one version has two decoded forms")
		}
		tx.Begin()
	}
	if decodes != 1 || tx.Work().Gets != gets+1 {
		t.Errorf("%d decodes and %d reads, want one each", decodes, tx.Work().Gets-gets)
	}

	// A row written in decoded form is never decoded again, in this entry or later.
	tx.PutDecoded(key, &row{"2"}, encodeRow)
	shared("2")
	commit(t, tx)
	shared("2")
	if decodes != 1 {
		t.Errorf("a row written in decoded form was decoded")
	}

	// A dropped version leaves the old one.
	tx.Begin()
	tx.PutDecoded(key, &row{"3"}, encodeRow)
	shared("3")
	tx.Drop()
	shared("2")

	// A deleted one is absent without a read, and comes back.
	gets = tx.Work().Gets
	tx.Delete(key)
	commit(t, tx)
	if d, err := tx.Shared(key, decode); d != nil || err != nil {
		t.Errorf("a deleted row reads as %v (%v)", d, err)
	}
	tx.Put(key, []byte("4"))
	commit(t, tx)
	shared("4")
	if tx.Work().Gets != gets {
		t.Errorf("%d reads of a row in memory", tx.Work().Gets-gets)
	}
}

func TestARowWrittenInDecodedFormIsEncodedOncePerCommand(t *testing.T) {
	tx := newTx(t, openMem(t, vfs.NewMem()))
	encodes := 0
	encode := func(dst []byte, d any) []byte { encodes++; return encodeRow(dst, d) }
	for i := range 10 {
		tx.PutDecoded([]byte("k"), &row{fmt.Sprint(i)}, encode)
	}
	for range 2 {
		tx.Written(func(_ string, value []byte) {
			if string(value) != "9" {
				t.Errorf("written as %s", value)
			}
		})
	}
	commit(t, tx)
	if encodes != 1 {
		t.Errorf("%d encodings of one row", encodes)
	}
	if got := text(t, tx, "k"); got != "9" {
		t.Errorf("stored as %s", got)
	}
}

func TestAHotRowThatCannotBeDecodedIsReportedEveryTime(t *testing.T) {
	tx := newTx(t, openMem(t, vfs.NewMem()))
	tx.Put([]byte("k"), []byte("bad"))
	commit(t, tx)
	bad := fmt.Errorf("bad record")
	for range 2 {
		if _, err := tx.Shared([]byte("k"), func([]byte) (any, error) { return nil, bad }); err != bad {
			t.Errorf("the damage was answered with %v", err)
		}
	}
}

func TestHotRowsAreBoundedAndTheBoundChangesNoAnswer(t *testing.T) {
	tx := newTx(t, openMem(t, vfs.NewMem()))
	tx.Put([]byte("k"), []byte("1"))
	commit(t, tx)
	for i := range maxHotRows + 2 {
		if d, err := tx.Shared(fmt.Append(nil, "absent", i), decodeRow); d != nil || err != nil {
			t.Fatalf("an absent row reads as %v (%v)", d, err)
		}
		if i%10_000 == 0 {
			if d, err := tx.Shared([]byte("k"), decodeRow); err != nil || d == nil || d.(*row).text != "1" {
				t.Fatalf("k reads as %v (%v)", d, err)
			}
		}
		if len(tx.hot) > maxHotRows {
			t.Fatalf("%d rows are kept", len(tx.hot))
		}
	}
}

func TestWorkCountsWhatACommandCosts(t *testing.T) {
	tx := newTx(t, openMem(t, vfs.NewMem()))
	tx.Put([]byte("ab"), []byte("123"))
	tx.Put([]byte("ab"), []byte("1234"))
	tx.Delete([]byte("xyz"))
	text(t, tx, "ab")
	text(t, tx, "none")
	_ = tx.Scan(nil, nil, false, func(_, _ []byte) (bool, error) { return true, nil })
	want := Work{Gets: 1, CacheHits: 1, Scans: 1, Scanned: 1, Puts: 2, Deletes: 1, Bytes: 5 + 6 + 3}
	if got := tx.Work(); got != want {
		t.Errorf("work is %+v, want %+v", got, want)
	}
}

func TestASnapshotCountsItsWork(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	tx := newTx(t, s)
	tx.Put([]byte("a"), []byte("1"))
	tx.Put([]byte("b"), []byte("1"))
	commit(t, tx)
	snap := s.NewSnapshot()
	defer snap.Close()
	text(t, snap, "a")
	_ = snap.Scan(nil, nil, true, func(_, _ []byte) (bool, error) { return true, nil })
	if got, want := snap.Work(), (Work{Gets: 1, Scans: 1, Scanned: 2}); got != want {
		t.Errorf("work is %+v, want %+v", got, want)
	}
}

func TestAnEntryWithoutWritesIsDurableAtOnce(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	tx := newTx(t, s)
	syncs := s.Syncs()
	if p := commit(t, tx); p.Rows != 0 || s.Syncs() != syncs {
		t.Errorf("%d rows and %d syncs for nothing", p.Rows, s.Syncs()-syncs)
	}
}

func TestTransactionsOfDifferentShardsShareAStore(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	a, b := newTx(t, s), newTx(t, s)
	a.Put([]byte("a"), []byte("1"))
	b.Put([]byte("b"), []byte("1"))
	commit(t, a)
	if got := text(t, b, "b"); got != "1" {
		t.Errorf("b sees its own write as %s", got)
	}
	commit(t, b)
	for key, tx := range map[string]*Tx{"a": a, "b": b} {
		if got := text(t, tx, key); got != "1" {
			t.Errorf("%s is %s", key, got)
		}
	}
}

func TestRowsWrittenLastAreReadFromMemory(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	tx := s.NewTx('r')
	defer tx.Close()
	tx.Begin()
	tx.Put([]byte("r1"), []byte("1"))
	tx.Put([]byte("x1"), []byte("1"))
	commit(t, tx)
	gets := tx.Work().Gets
	if got := text(t, tx, "r1"); got != "1" || tx.Work().Gets != gets {
		t.Errorf("r1 reads as %s at %d reads", got, tx.Work().Gets-gets)
	}
	if got := text(t, tx, "x1"); got != "1" || tx.Work().Gets != gets+1 {
		t.Errorf("x1 reads as %s at %d reads, want one", got, tx.Work().Gets-gets)
	}
	tx.Delete([]byte("r1"))
	commit(t, tx)
	if got := text(t, tx, "r1"); got != "absent" {
		t.Errorf("a deleted row reads as %s", got)
	}
}

func TestRowsWrittenLastAreBoundedByTwoGenerations(t *testing.T) {
	tx := newTx(t, openMem(t, vfs.NewMem()))
	tx.recent.init([]byte("r"))
	value := make([]byte, 1<<20)
	for i := range 20 {
		tx.Put(fmt.Appendf(nil, "r%02d", i), value)
		commit(t, tx)
		if held := len(tx.recent.young) + len(tx.recent.old); held > 2*(recentBytes>>20+1) {
			t.Fatalf("%d MiB are held", held)
		}
		if got := text(t, tx, "r00"); len(got) != len(value) {
			t.Fatalf("r00 reads as %d bytes", len(got))
		}
	}
}
