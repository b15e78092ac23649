package source

import (
	"slices"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// The identity of an event that is stored follows from it, except the digest: that
// was taken when the event came, so it tells whether the content is still the same.
// The identity of a purged event follows from nothing. Which there must be stands
// in the lists of purged ids.

// lists reads the lists of purged ids: no gap, no list is kept shorter than the one
// before it.
func (x *auditor) lists() error {
	return op.Each(x.Audit, &purgedIDs, func(k eventKey, l *idList) error {
		t := x.of(k.Source, purgedIDs.Name)
		if t == nil {
			return nil
		}
		where, n := name(k.Source), uint64(len(l.IDs))
		if n == 0 || k.Position-n != t.listed {
			x.Report(sourceIDs, where, "the list of %d ids that ends at %d does not follow position %d", n, k.Position, t.listed)
		}
		if l.Until > t.head.KeepIDsUntil || l.Until < t.until {
			x.Report(sourceIDs, where, "the list that ends at %d is kept until %d, the one before it until %d, and the head says %d",
				k.Position, l.Until, t.until, t.head.KeepIDsUntil)
		}
		t.listed, t.until = k.Position, l.Until
		if t.dueIDs == 0 {
			t.dueIDs = l.Until
		}
		for i, id := range l.IDs {
			t.purged.Add(recalled(id, k.Position-(n-1-uint64(i))))
		}
		return nil
	})
}

// recalled is an id with its position, to be summed up.
func recalled(id string, position uint64) []byte {
	return append(codec.AppendUint64(make([]byte, 0, 8+len(id)), position), id...)
}

// identities reads those of purged events; the others are compared with what the
// events imply, and so are those that cannot be read.
func (x *auditor) identities() error {
	return x.EachRaw(identities.Info(), func(key, value []byte) error {
		if t, k, v := x.ofPurged(key, value); t != nil {
			t.recalled.Add(recalled(k.ID, v.Position))
		}
		return nil
	})
}

// ofPurged finds the source of an identity whose event's row is gone; nil where it
// is another one.
func (x *auditor) ofPurged(key, value []byte) (*tally, idKey, *identity) {
	k, v, err := identities.Row(key, value)
	if err != nil {
		return nil, k, v
	}
	if x.last == nil || x.last.key != k.Source {
		t := x.sources[string(k.Source.Append(nil))]
		if t == nil {
			return nil, k, v
		}
		x.last = t
	}
	if h := &x.last.head; v.Position <= h.Forgotten || v.Position > h.Removed {
		return nil, k, v
	}
	return x.last, k, v
}

// purgedIdentity passes over identities that follow from nothing.
func (x *auditor) purgedIdentity(key, value []byte) (bool, error) {
	t, _, _ := x.ofPurged(key, value)
	return t != nil, nil
}

// identityOf is the position of the event that an identity is of.
func identityOf(dst, key, value []byte) []byte {
	var i identity
	kr := codec.NewKeyReader(key[1:])
	ReadKey(&kr)
	if kr.Err() != nil || i.decode(value) != nil {
		return append(dst, key...)
	}
	return codec.AppendUint64(append(dst, key[:len(key)-len(kr.Rest())]...), i.Position)
}

// evidence keeps an identity of the right position and another digest: the content
// of the event may be what is damaged. One of another position follows its event,
// whose position is verified by those beside it. It also keeps one of a purged event,
// whatever it says: that cannot be made again.
func (x *auditor) evidence(key, stored, implied []byte) op.Weight {
	if stored == nil {
		return op.Weighed
	}
	k, is, err := identities.Row(key, stored)
	if implied != nil {
		_, should, err2 := identities.Row(key, implied)
		if err == nil && err2 == nil && is.Position == should.Position {
			return op.Keep
		}
		return op.Follow
	}
	listed := false
	err = purgedIDs.Scan(x.R, table.Range{Prefix: k.Source.Append(nil)}, func(_ eventKey, l *idList) (bool, error) {
		listed = slices.Contains(l.IDs, k.ID)
		return !listed, nil
	})
	if listed || err != nil {
		return op.Keep
	}
	return op.Weighed
}
