package kv

import (
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tidwall/btree"
)

// write is the latest value of one key within the current entry.
type write struct {
	value   []byte // nil: deleted
	command uint32 // which command of the entry wrote it last
	fresh   bool   // the key was inserted in this entry and is absent below
}

// undo is what a key's write was before the current command touched it.
type undo struct {
	key  string
	prev write
	had  bool
}

// hotRow is a row kept in memory between entries.
type hotRow struct {
	value   []byte // nil: known to be absent
	decoded any    // decoded form of value, made on demand
}

// maxHotRows bounds the memory of the cache; at the bound it is emptied, which
// costs reads and changes no answer.
const maxHotRows = 1 << 16

// Tx holds the writes of one entry above the store, command by command. It
// belongs to one shard and one goroutine.
//
// Life: Begin, reads and writes, then Keep or Drop — for each command; then
// Commit — for each entry.
type Tx struct {
	store   *Store
	writes  btree.Map[string, write]
	undo    []undo
	command uint32
	hot     map[string]hotRow
	it      *pebble.Iterator
	scans   int
	work    Work
}

// NewTx makes the transaction of one shard.
func (s *Store) NewTx() *Tx { return &Tx{store: s, hot: map[string]hotRow{}} }

// Begin starts a command; what it writes can be dropped until the next Begin.
func (t *Tx) Begin() {
	t.command++
	t.undo = t.undo[:0]
}

// Drop takes back every write since Begin. It costs the number of those writes.
func (t *Tx) Drop() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		u := &t.undo[i]
		if u.had {
			t.writes.Set(u.key, u.prev)
		} else {
			t.writes.Delete(u.key)
		}
	}
	t.undo = t.undo[:0]
}

// Written calls fn for every key the current command has written, in the order
// of first writing, with its final value (nil when deleted). The order depends
// on nothing but the command, so a digest over it is equal on every replica.
func (t *Tx) Written(fn func(key string, value []byte)) {
	for i := range t.undo {
		w, _ := t.writes.Get(t.undo[i].key)
		fn(t.undo[i].key, w.value)
	}
}

// Dirty says whether the current command has written anything.
func (t *Tx) Dirty() bool { return len(t.undo) > 0 }

// Work is what this transaction has cost since NewTx.
func (t *Tx) Work() Work { return t.work }

// Get implements Reader.
func (t *Tx) Get(key []byte) ([]byte, bool, error) {
	if w, ok := t.writes.Get(view(key)); ok {
		t.work.CacheHits++
		return w.value, w.value != nil, nil
	}
	t.work.Gets++
	return get(t.store.db, key)
}

// GetHot is Get for rows read by most commands: the row stays in memory.
func (t *Tx) GetHot(key []byte) ([]byte, bool, error) {
	if w, ok := t.writes.Get(view(key)); ok {
		t.work.CacheHits++
		return w.value, w.value != nil, nil
	}
	if h, ok := t.hot[string(key)]; ok {
		t.work.CacheHits++
		return h.value, h.value != nil, nil
	}
	t.work.Gets++
	v, ok, err := get(t.store.db, key)
	if err != nil {
		return nil, false, err
	}
	t.keepHot(string(key), v)
	return v, ok, nil
}

func (t *Tx) keepHot(key string, value []byte) {
	if len(t.hot) >= maxHotRows {
		clear(t.hot)
	}
	t.hot[key] = hotRow{value: value}
}

// Decoded returns the decoded form of a hot row whose current bytes are value,
// making it with decode at most once per stored version. The result is shared:
// it must not be changed.
func (t *Tx) Decoded(key, value []byte, decode func([]byte) (any, error)) (any, error) {
	h, ok := t.hot[string(key)]
	if ok && h.decoded != nil && same(h.value, value) {
		return h.decoded, nil
	}
	d, err := decode(value)
	if err != nil {
		return nil, err
	}
	if ok && same(h.value, value) {
		h.decoded = d
		t.hot[string(key)] = h
	}
	return d, nil
}

func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || unsafe.SliceData(a) == unsafe.SliceData(b))
}

// Put writes a row. The transaction keeps value; the caller must not change it.
func (t *Tx) Put(key, value []byte) { t.set(key, value, false) }

// Insert writes a row whose key the caller knows to be absent from the store,
// so that deleting it within the same entry leaves no trace on disk.
func (t *Tx) Insert(key, value []byte) { t.set(key, value, true) }

// Delete removes a row, present or not.
func (t *Tx) Delete(key []byte) { t.set(key, nil, false) }

func (t *Tx) set(key, value []byte, fresh bool) {
	if t.scans > 0 {
		panic("kv: a write within a scan of the same transaction")
	}
	if value == nil && fresh {
		panic("kv: an insert without a value")
	}
	old, had := t.writes.Get(view(key))
	k := string(key)
	if !had || old.command != t.command {
		t.undo = append(t.undo, undo{key: k, prev: old, had: had})
	}
	w := write{value: value, command: t.command, fresh: fresh}
	if had {
		w.fresh = old.fresh
	}
	t.writes.Set(k, w)
	t.work.Bytes += uint64(len(key) + len(value))
	if value == nil {
		t.work.Deletes++
	} else {
		t.work.Puts++
	}
}

// view lets a lookup use key without copying it; the map never keeps it.
func view(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }
