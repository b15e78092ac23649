package kv

import (
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tidwall/btree"
)

// write is the latest value of one key within the current entry.
type write struct {
	value   []byte // nil: deleted, or still to be made from decoded
	decoded any    // decoded form of the row, if the writer gave it
	encode  Encode // makes value from decoded when it is first needed
	command uint32 // which command of the entry wrote it last
	fresh   bool   // the key was inserted in this entry and is absent below
}

// Encode appends the record of a decoded row.
type Encode func(dst []byte, decoded any) []byte

func (w *write) deleted() bool { return w.value == nil && w.encode == nil }

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
	recent  recent
	points  points
	it      *pebble.Iterator
	scans   int
	work    Work
}

// NewTx makes the transaction of one shard. recent names the first key bytes of
// rows that are likely to be read again soon after they were written; the last
// ones written stay in memory.
func (s *Store) NewTx(recent ...byte) *Tx {
	t := &Tx{store: s, hot: map[string]hotRow{}}
	t.recent.init(recent)
	return t
}

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
		fn(t.undo[i].key, t.materialize(t.undo[i].key, &w))
	}
}

// Dirty says whether the current command has written anything.
func (t *Tx) Dirty() bool { return len(t.undo) > 0 }

// Work is what this transaction has cost since NewTx.
func (t *Tx) Work() Work { return t.work }

// materialize makes the record of a row that was written in decoded form.
func (t *Tx) materialize(key string, w *write) []byte {
	if w.value == nil && w.encode != nil {
		w.value, w.encode = w.encode(make([]byte, 0, 128), w.decoded), nil
		t.writes.Set(key, *w)
		t.work.Bytes += uint64(len(w.value))
	}
	return w.value
}

// Get implements Reader.
func (t *Tx) Get(key []byte) ([]byte, bool, error) {
	if w, ok := t.writes.Get(view(key)); ok {
		t.work.CacheHits++
		if w.encode != nil {
			t.materialize(string(key), &w)
		}
		return w.value, w.value != nil, nil
	}
	if v, ok := t.recent.get(key); ok {
		t.work.CacheHits++
		return v, v != nil, nil
	}
	t.work.Gets++
	return t.points.get(t.store.db, key)
}

// hotRow finds a row that this entry has not written.
func (t *Tx) hotRow(key []byte) (hotRow, error) {
	if h, ok := t.hot[string(key)]; ok {
		t.work.CacheHits++
		return h, nil
	}
	t.work.Gets++
	v, _, err := t.points.get(t.store.db, key)
	if err != nil {
		return hotRow{}, err
	}
	t.keepHot(string(key), v)
	return hotRow{value: v}, nil
}

// Shared returns the decoded form of a hot row, decoding it at most once per
// version; nil means absent. The result is shared: it must not be changed.
func (t *Tx) Shared(key []byte, decode func([]byte) (any, error)) (any, error) {
	if w, ok := t.writes.Get(view(key)); ok {
		t.work.CacheHits++
		switch {
		case w.decoded != nil:
			return w.decoded, nil
		case w.value == nil:
			return nil, nil
		}
		return decode(w.value)
	}
	h, err := t.hotRow(key)
	if err != nil || h.value == nil || h.decoded != nil {
		return h.decoded, err
	}
	if h.decoded, err = decode(h.value); err != nil {
		return nil, err
	}
	t.hot[string(key)] = h
	return h.decoded, nil
}

func (t *Tx) keepHot(key string, value []byte) {
	if len(t.hot) >= maxHotRows {
		clear(t.hot)
	}
	t.hot[key] = hotRow{value: value}
}

// Put writes a row. The transaction keeps value; the caller must not change it.
func (t *Tx) Put(key, value []byte) { t.set(key, write{value: value}) }

// PutDecoded is Put of a hot row in decoded form, which must not be changed
// afterwards. The record is made once, when the command ends, however often the
// row was written before that.
func (t *Tx) PutDecoded(key []byte, decoded any, encode Encode) {
	t.set(key, write{decoded: decoded, encode: encode})
}

// Insert writes a row whose key the caller knows to be absent from the store,
// so that deleting it within the same entry leaves no trace on disk.
func (t *Tx) Insert(key, value []byte) { t.set(key, write{value: value, fresh: true}) }

// Delete removes a row, present or not.
func (t *Tx) Delete(key []byte) { t.set(key, write{}) }

func (t *Tx) set(key []byte, w write) {
	if t.scans > 0 {
		panic("kv: a write within a scan of the same transaction")
	}
	if w.fresh && w.deleted() {
		panic("kv: an insert without a value")
	}
	old, had := t.writes.Get(view(key))
	k := string(key)
	if !had || old.command != t.command {
		t.undo = append(t.undo, undo{key: k, prev: old, had: had})
	}
	w.command = t.command
	if had {
		w.fresh = old.fresh
	}
	t.writes.Set(k, w)
	t.work.Bytes += uint64(len(key) + len(w.value))
	if w.deleted() {
		t.work.Deletes++
	} else {
		t.work.Puts++
	}
}

// view lets a lookup use key without copying it; the map never keeps it.
func view(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }
