package store

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
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

// Entry is one entry of an index.
type Entry struct {
	Position []byte // of the entry in its index
	ID       string // of the document
	Bytes    int    // of the row
}

// Entries calls fn for the entries of a span of an index until fn says stop or
// fails. fn may read and must not write.
func (c *Collection) Entries(r kv.Reader, ix *Index, span Span, fn func(e Entry) (bool, error)) error {
	prefix := c.prefix(ix)
	lower, upper := span.bounds(prefix)
	return r.Scan(lower, upper, span.Reverse, func(key, value []byte) (bool, error) {
		kr := codec.NewKeyReader(key[1:])
		k := readEntryKey(&kr)
		if err := kr.End(); err != nil {
			return false, &table.Damage{Table: entries.Name, Key: append([]byte(nil), key...), Cause: err}
		}
		e := Entry{append([]byte(nil), key[len(prefix):]...), k.ID, len(key) + len(value)}
		if ix.Definition.Unique {
			e.ID = string(value)
		}
		return fn(e)
	})
}

// Documents calls fn for the documents and tombstones of a span, whose positions
// are ids, until fn says stop or fails. The body is valid within the call only;
// bytes is the size of the row.
func (c *Collection) Documents(r kv.Reader, span Span, fn func(id string, d *Document, bytes int) (bool, error)) error {
	prefix := c.Owner.Append([]byte{byte(documents.ID)})
	lower, upper := span.bounds(prefix)
	return r.Scan(lower, upper, span.Reverse, func(key, value []byte) (bool, error) {
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
