package kv

// recentBytes bounds each of the two generations of recently written rows.
const recentBytes = 8 << 20

// recent keeps the rows of some tables that were written last, so that what is
// read soon after it was written costs no read of the store. It holds two
// generations: when the young one is full it becomes the old one, and the old
// one is forgotten. A row in it is exactly what the store holds.
type recent struct {
	tables     [256]bool
	used       bool
	young, old map[string][]byte // nil value: known to be absent
	bytes      int
}

func (r *recent) init(tables []byte) {
	for _, t := range tables {
		r.tables[t], r.used = true, true
	}
	r.young, r.old = map[string][]byte{}, map[string][]byte{}
}

func (r *recent) get(key []byte) ([]byte, bool) {
	if !r.used || !r.tables[key[0]] {
		return nil, false
	}
	if v, ok := r.young[string(key)]; ok {
		return v, true
	}
	v, ok := r.old[string(key)]
	return v, ok
}

// put notes what a commit wrote. A deleted row is forgotten rather than kept as
// absent: it is rarely asked for again.
func (r *recent) put(key string, value []byte) {
	if !r.used || !r.tables[key[0]] {
		return
	}
	if value == nil {
		delete(r.young, key)
		delete(r.old, key)
		return
	}
	if r.bytes > recentBytes {
		r.old, r.young, r.bytes = r.young, make(map[string][]byte, len(r.young)), 0
	}
	r.young[key] = value
	r.bytes += len(key) + len(value) + 64
}
