package kv

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tidwall/btree"
)

// Scan implements Reader: the rows of the store with the entry's writes laid
// over them.
func (t *Tx) Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) (bool, error)) error {
	t.work.Scans++
	base, err := t.iterator(lower, upper)
	if err != nil {
		return err
	}
	over := overlayRange{iter: t.writes.Iter(), lower: lower, upper: upper, reverse: reverse}
	t.scans++
	defer func() { t.scans-- }()
	baseOK, overOK := first(base, reverse), over.first()
	for baseOK || overOK {
		order := -1 // which side is next: the store (-1), the overlay (1), both (0)
		switch {
		case !baseOK:
			order = 1
		case overOK:
			order = bytes.Compare(base.Key(), []byte(over.iter.Key()))
			if reverse {
				order = -order
			}
		}
		var key, value []byte
		if order >= 0 {
			w := over.iter.Value()
			if key = []byte(over.iter.Key()); w.encode != nil {
				value = w.encode(nil, w.decoded)
			} else {
				value = w.value
			}
		} else {
			key, value = base.Key(), base.Value()
		}
		if value != nil || order < 0 {
			t.work.Scanned++
			more, err := fn(key, value)
			if err != nil || !more {
				return err
			}
		}
		if order <= 0 {
			baseOK = next(base, reverse)
		}
		if order >= 0 {
			overOK = over.next()
		}
	}
	return readError(base.Error())
}

// iterator is one Pebble iterator for all scans of an entry: the store below
// the overlay does not change until Commit, so it need not be made anew.
func (t *Tx) iterator(lower, upper []byte) (*pebble.Iterator, error) {
	if t.scans > 0 { // a scan inside a scan needs its own
		panic("kv: a scan within a scan of the same transaction")
	}
	if t.it == nil {
		it, err := t.store.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		if err != nil {
			return nil, readError(err)
		}
		t.it = it
		return it, nil
	}
	t.it.SetBounds(lower, upper)
	return t.it, nil
}

// overlayRange walks the entry's writes within bounds.
type overlayRange struct {
	iter         btree.MapIter[string, write]
	lower, upper []byte
	reverse      bool
}

func (o *overlayRange) first() bool {
	if !o.reverse {
		return o.within(o.iter.Seek(string(o.lower)))
	}
	if o.upper == nil {
		return o.within(o.iter.Last())
	}
	if o.iter.Seek(string(o.upper)) {
		return o.within(o.iter.Prev())
	}
	return o.within(o.iter.Last())
}

func (o *overlayRange) next() bool {
	if o.reverse {
		return o.within(o.iter.Prev())
	}
	return o.within(o.iter.Next())
}

func (o *overlayRange) within(ok bool) bool {
	if !ok {
		return false
	}
	k := o.iter.Key()
	if o.reverse {
		return k >= string(o.lower)
	}
	return o.upper == nil || k < string(o.upper)
}
