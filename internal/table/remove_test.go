package table

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
)

// raw is the key of a row that no table describes.
func raw(group, name string) []byte { return codec.AppendText([]byte{202}, group+"/"+name) }

// names lists the rows there are, by the bytes of their keys.
func names(t *testing.T, r kv.Reader) (out []string) {
	t.Helper()
	err := r.Scan([]byte{202}, []byte{203}, false, func(key, _ []byte) (bool, error) {
		kr := codec.NewKeyReader(key[1:])
		out = append(out, kr.Text())
		return true, kr.End()
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// three makes a transaction over the rows a/0, b/0 to b/(n-1) and c/0, some of them
// in the store and some of them only written.
func three(t *testing.T, n, bytes int) *kv.Tx {
	t.Helper()
	_, tx := openStore(t)
	for i := range n {
		if i == n/2 {
			commit(t, tx)
			tx.Begin()
		}
		tx.Put(raw("b", fmt.Sprintf("%02d", i)), make([]byte, bytes))
	}
	tx.Put(raw("a", "0"), []byte{})
	tx.Put(raw("c", "0"), []byte{})
	return tx
}

var onlyB = []byte("\xcab/")

func TestRemoveSomeDeletesTheFirstRowsBelowAPrefixAndSaysWhichIsNext(t *testing.T) {
	for _, c := range []struct {
		rows, removed int
		next          []byte
	}{
		{-1, 0, raw("b", "00")}, {0, 0, raw("b", "00")}, {1, 1, raw("b", "01")},
		{5, 5, raw("b", "05")}, {6, 6, nil}, {7, 6, nil},
	} {
		tx := three(t, 6, 1)
		before := tx.Work()
		removed, next, err := RemoveSome(tx, onlyB, nil, c.rows)
		if err != nil || removed != c.removed || !bytes.Equal(next, c.next) || (next == nil) != (c.next == nil) {
			t.Errorf("of at most %d: removed %d, next is %q, %v", c.rows, removed, next, err)
		}
		if w := tx.Work(); w.Scanned-before.Scanned > uint64(max(c.rows, 0)+1) || w.Gets != before.Gets {
			t.Errorf("of at most %d: it read %+v, before it %+v", c.rows, w, before)
		}
		if left := names(t, tx); len(left) != 8-c.removed || left[0] != "a/0" || left[len(left)-1] != "c/0" {
			t.Errorf("of at most %d: %v are left", c.rows, left)
		}
	}
}

func TestRemoveSomeGoesOnWhereItIsToldToAndNeverLeavesItsPrefix(t *testing.T) {
	tx := three(t, 6, 1)
	if removed, next, err := RemoveSome(tx, onlyB, raw("b", "03"), 2); err != nil || removed != 2 || !bytes.Equal(next, raw("b", "05")) {
		t.Errorf("from the fourth: removed %d, next is %q, %v", removed, next, err)
	}
	if removed, next, err := RemoveSome(tx, onlyB, raw("b", "06"), 2); err != nil || removed != 0 || next != nil {
		t.Errorf("from after the last: removed %d, next is %q, %v", removed, next, err)
	}
	if removed, next, err := RemoveSome(tx, onlyB, raw("a", "0"), 9); err != nil || removed != 4 || next != nil {
		t.Errorf("from before the prefix: removed %d, next is %q, %v", removed, next, err)
	}
	if left := fmt.Sprint(names(t, tx)); left != "[a/0 c/0]" {
		t.Errorf("%s are left", left)
	}
}

func TestRemoveSomeReadsOverAsManyBytesAsItMayAndAtLeastOneRow(t *testing.T) {
	for _, c := range []struct{ bytes, removed int }{
		{removeBytes/2 - 1, 3}, {removeBytes / 2, 2}, {removeBytes/2 + 1, 2}, {removeBytes + 1, 1},
	} {
		tx := three(t, 4, c.bytes)
		if removed, next, err := RemoveSome(tx, onlyB, nil, 100); err != nil || removed != c.removed || !bytes.Equal(next, raw("b", fmt.Sprintf("%02d", c.removed))) {
			t.Errorf("of rows of %d bytes: removed %d, next is %q, %v", c.bytes, removed, next, err)
		}
	}
}
