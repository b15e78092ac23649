package store

import (
	"errors"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Span is a range of an index, or of the documents in the order of their ids:
// positions from Lower on and below Upper. Positions are compared as bytes; nil
// is no bound.
type Span struct {
	Lower, Upper []byte
	Reverse      bool
}

// After narrows the span to what follows a position in its direction.
func (s Span) After(position []byte) Span {
	if s.Reverse {
		s.Upper = position
	} else {
		s.Lower = append(append(make([]byte, 0, len(position)+1), position...), 0)
	}
	return s
}

// bounds are the span's keys below a prefix.
func (s Span) bounds(prefix []byte) (lower, upper []byte) {
	lower = append(append(make([]byte, 0, len(prefix)+len(s.Lower)), prefix...), s.Lower...)
	if s.Upper == nil {
		return lower, codec.PrefixEnd(prefix)
	}
	return lower, append(append(make([]byte, 0, len(prefix)+len(s.Upper)), prefix...), s.Upper...)
}

// Under is the span of the positions that begin with a prefix.
func Under(prefix []byte) Span { return Span{Lower: prefix, Upper: codec.PrefixEnd(prefix)} }

// Place is where a document stands in a span.
type Place struct {
	Position []byte // in the index; the id where there is none
	ID       string
	Bytes    int // of the rows looked at
}

// Find calls fn for the documents of a span of an index, in its order, until fn
// says stop or fails; without an index, for the documents and tombstones of a
// span of ids, like Documents. more is asked before a document of an index is
// read. Neither may write. The body is valid within the call only.
func (c *Collection) Find(s *op.Scope, ix *Index, span Span, more func() bool, fn func(p Place, d *Document) (bool, error)) error {
	if ix == nil {
		return c.Documents(s, span, func(id string, d *Document, bytes int) (bool, error) {
			return fn(Place{[]byte(id), id, bytes}, d)
		})
	}
	prefix := c.prefix(ix)
	return c.entries(s, ix, span, func(e entryAt) (bool, error) {
		if !more() {
			return false, nil
		}
		d, err := c.Get(s, e.id)
		if err != nil {
			return false, err
		}
		if d == nil || d.Deleted {
			return false, &table.Damage{Table: entries.Name, Key: append(prefix, e.position...), Cause: errors.New("the entry has no document")}
		}
		return fn(Place{e.position, e.id, e.bytes + len(e.id) + len(d.Body)}, d)
	})
}

// entryAt is one entry of an index.
type entryAt struct {
	position []byte
	id       string
	bytes    int
}

// entries calls fn for the entries of a span of an index.
func (c *Collection) entries(s *op.Scope, ix *Index, span Span, fn func(e entryAt) (bool, error)) error {
	prefix := c.prefix(ix)
	lower, upper := span.bounds(prefix)
	return s.R.Scan(lower, upper, span.Reverse, func(key, value []byte) (bool, error) {
		kr := codec.NewKeyReader(key[1:])
		k := readEntryKey(&kr)
		if err := kr.End(); err != nil {
			return false, &table.Damage{Table: entries.Name, Key: append([]byte(nil), key...), Cause: err}
		}
		e := entryAt{append([]byte(nil), key[len(prefix):]...), k.ID, len(key) + len(value)}
		if ix.Definition.Unique {
			e.id = string(value)
		}
		return fn(e)
	})
}

// Documents calls fn for the documents and tombstones of a span, whose positions
// are ids, until fn says stop or fails. The body is valid within the call only;
// bytes is the size of the row.
func (c *Collection) Documents(s *op.Scope, span Span, fn func(id string, d *Document, bytes int) (bool, error)) error {
	prefix := c.Owner.Append([]byte{byte(documents.ID)})
	lower, upper := span.bounds(prefix)
	return s.R.Scan(lower, upper, span.Reverse, func(key, value []byte) (bool, error) {
		var d Document
		if err := d.decode(value); err != nil {
			return false, &table.Damage{Table: documents.Name, Key: append([]byte(nil), key...), Cause: err}
		}
		return fn(string(key[len(prefix):]), &d, len(key)+len(value))
	})
}

// PositionOf is the place of a document in an index.
func (c *Collection) PositionOf(ix *Index, id string, d *Document) ([]byte, error) {
	list, err := c.entriesOf(id, d)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if e.key.Index == ix.number {
			return e.key.append(nil)[table.OwnerBytes+1:], nil
		}
	}
	return nil, nil
}

// Number is the place of the index in the collection's definition.
func (ix *Index) Number() int { return int(ix.number) }
