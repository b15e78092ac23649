package kv

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// modelRow is what the model knows of a key written in the current entry.
type modelRow struct {
	value *string // nil: deleted
	fresh bool    // inserted in this entry
}

// model is the naive twin of a store with one transaction.
type model struct {
	stored  map[string]string   // below the overlay
	entry   map[string]modelRow // the overlay
	before  map[string]modelRow // the overlay as it was at Begin
	written []string            // keys of this command in the order of first writing

	fs       vfs.FS
	store    *Store
	tx       *Tx
	pinned   *Snapshot
	pinnedAs map[string]string
}

func (m *model) open(t *rapid.T) {
	s, err := Open("db", Options{FS: m.fs, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	m.store, m.tx = s, s.NewTx('a') // rows under a stay in memory after they are written
	m.entry, m.before, m.written = map[string]modelRow{}, map[string]modelRow{}, nil
	m.tx.Begin()
}

func (m *model) close(t *rapid.T) {
	if m.pinned != nil {
		if err := m.pinned.Close(); err != nil {
			t.Fatal(err)
		}
		m.pinned = nil
	}
	if err := m.tx.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
}

func (m *model) set(key string, value *string, insert bool) {
	old, had := m.entry[key]
	m.entry[key] = modelRow{value, had && old.fresh || !had && insert}
	if !slices.Contains(m.written, key) {
		m.written = append(m.written, key)
	}
}

// visible is every row as the transaction must see it.
func (m *model) visible() map[string]string {
	all := maps.Clone(m.stored)
	for k, r := range m.entry {
		delete(all, k)
		if r.value != nil {
			all[k] = *r.value
		}
	}
	return all
}

// row is the decoded form used by the model: the text of the record.
type row struct{ text string }

func encodeRow(dst []byte, decoded any) []byte { return append(dst, decoded.(*row).text...) }
func decodeRow(b []byte) (any, error)          { return &row{string(b)}, nil }

var (
	modelKey = rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0x00, 'a', 'b', 0xFF}), 1, 3).Draw(t, "key"))
	})
	modelValue = rapid.Custom(func(t *rapid.T) string {
		return rapid.StringN(0, 6, -1).Draw(t, "value")
	})
)

func TestATransactionBehavesLikeASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{stored: map[string]string{}, fs: vfs.NewMem()}
		m.open(t)
		t.Repeat(m.actions())
		m.close(t)
	})
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"begin": func(*rapid.T) {
			m.tx.Begin()
			m.before, m.written = maps.Clone(m.entry), nil
		},
		"drop": func(*rapid.T) {
			m.tx.Drop()
			m.entry, m.written = maps.Clone(m.before), nil
		},
		"put": func(t *rapid.T) {
			k, v := modelKey.Draw(t, "k"), modelValue.Draw(t, "v")
			m.tx.Put([]byte(k), []byte(v))
			m.set(k, &v, false)
		},
		"putDecoded": func(t *rapid.T) {
			k, v := modelKey.Draw(t, "k"), "d"+modelValue.Draw(t, "v")
			m.tx.PutDecoded([]byte(k), &row{v}, encodeRow)
			m.set(k, &v, false)
		},
		"insert": func(t *rapid.T) {
			k, v := modelKey.Draw(t, "k"), modelValue.Draw(t, "v")
			if _, there := m.stored[k]; there {
				t.Skip("the key is in the store")
			}
			m.tx.Insert([]byte(k), []byte(v))
			m.set(k, &v, true)
		},
		"delete": func(t *rapid.T) {
			k := modelKey.Draw(t, "k")
			m.tx.Delete([]byte(k))
			m.set(k, nil, false)
		},
		"get":    m.get,
		"shared": m.shared,
		"scan":   m.scan,
		"commit": m.commit,
		"reopen": func(t *rapid.T) {
			m.close(t)
			m.open(t)
		},
		"flush": func(t *rapid.T) {
			if err := m.store.Flush(); err != nil {
				t.Fatal(err)
			}
		},
		"pin": func(t *rapid.T) {
			if m.pinned != nil {
				t.Skip("one is pinned")
			}
			m.pinned, m.pinnedAs = m.store.NewSnapshot(), maps.Clone(m.stored)
		},
		"": m.invariants,
	}
}

func (m *model) get(t *rapid.T) {
	k := modelKey.Draw(t, "k")
	want, there := m.visible()[k]
	v, ok, err := m.tx.Get([]byte(k))
	if err != nil || ok != there || string(v) != want || ok != (v != nil) {
		t.Fatalf("Get(%q) = %q, %v, %v; want %q, %v", k, v, ok, err, want, there)
	}
}

func (m *model) shared(t *rapid.T) {
	k := modelKey.Draw(t, "k")
	want, there := m.visible()[k]
	m.sharedAs(t, m.tx, k, want, there)
	if m.pinned != nil {
		want, there = m.pinnedAs[k]
		m.sharedAs(t, m.pinned, k, want, there)
	}
}

func (m *model) sharedAs(t *rapid.T, r Reader, k, want string, there bool) {
	d, err := r.Shared([]byte(k), decodeRow)
	if err != nil || (d != nil) != there || there && d.(*row).text != want {
		t.Fatalf("%T: Shared(%q) = %v, %v; want %q, %v", r, k, d, err, want, there)
	}
}

func (m *model) scan(t *rapid.T) {
	var lower, upper []byte
	if rapid.Bool().Draw(t, "has lower") {
		lower = []byte(modelKey.Draw(t, "lower"))
	}
	if rapid.Bool().Draw(t, "has upper") {
		upper = []byte(modelKey.Draw(t, "upper"))
		if bytes.Compare(lower, upper) > 0 {
			lower, upper = upper, lower
		}
	}
	reverse, limit := rapid.Bool().Draw(t, "reverse"), rapid.IntRange(1, 20).Draw(t, "limit")
	same(t, m.tx, m.visible(), lower, upper, reverse, limit)
}

// same fails unless a scan sees exactly the rows of a map.
func same(t *rapid.T, r Reader, rows map[string]string, lower, upper []byte, reverse bool, limit int) {
	var want, got []string
	keys := slices.Sorted(maps.Keys(rows))
	if reverse {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		if k >= string(lower) && (upper == nil || k < string(upper)) && len(want) < limit {
			want = append(want, fmt.Sprintf("%q=%q", k, rows[k]))
		}
	}
	work := r.Work().Scanned
	err := r.Scan(lower, upper, reverse, func(k, v []byte) (bool, error) {
		got = append(got, fmt.Sprintf("%q=%q", k, v))
		return len(got) < limit, nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("scan of [%q, %q) reverse %v limit %d\n got %v (%v)\nwant %v", lower, upper, reverse, limit, got, err, want)
	}
	if n := r.Work().Scanned - work; n != uint64(len(want)) {
		t.Fatalf("%d rows were counted, %d were seen", n, len(want))
	}
}

func (m *model) commit(t *rapid.T) {
	rows := 0
	for _, r := range m.entry {
		if r.value != nil || !r.fresh {
			rows++
		}
	}
	p, err := m.tx.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if p.Rows != rows {
		t.Fatalf("%d rows reached the store, want %d", p.Rows, rows)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	m.stored = m.visible()
	m.entry, m.before, m.written = map[string]modelRow{}, map[string]modelRow{}, nil
	m.tx.Begin()
}

// invariants hold after every action: what the command wrote, the whole of the
// state, and the pinned snapshot.
func (m *model) invariants(t *rapid.T) {
	var keys []string
	m.tx.Written(func(key string, value []byte) {
		keys = append(keys, key)
		want := m.entry[key].value
		if (value == nil) != (want == nil) || want != nil && string(value) != *want {
			t.Fatalf("%q was written as %q", key, value)
		}
	})
	if !slices.Equal(keys, m.written) || m.tx.Dirty() != (len(m.written) > 0) {
		t.Fatalf("written %q in this order, want %q", keys, m.written)
	}
	same(t, m.tx, m.visible(), nil, nil, false, 1000)
	if m.pinned != nil {
		same(t, m.pinned, m.pinnedAs, nil, nil, true, 1000)
	}
}
