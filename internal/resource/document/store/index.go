package store

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// Index is one index of a collection. Every document has exactly one entry in
// it, at the key form of its indexed fields (see jsontree.Scalar): a field that
// is missing, an object or an array stands as absent, below null. So a query
// finds the same documents through any index or none. A unique index refuses a
// second document with the same fields unless one of them is absent; null is a
// value like any other.
type Index struct {
	Definition *api.IndexDefinition
	Pointers   []jsontree.Pointer

	number uint8
}

// Collection is one collection in one partition.
type Collection struct {
	Owner      table.Owner
	Definition *api.Resource
	Indexes    []Index

	pointers []jsontree.Pointer // of all indexes, one after the other
}

// Open finds the collection a request names in the scope's partition. Errors:
// those of directory.Resolve.
func Open(s *op.Scope, name string) (*Collection, error) {
	def, owner, err := directory.Resolve(s, name, api.KindCollection)
	if err != nil {
		return nil, err
	}
	return of(owner, def)
}

// of makes the collection of a definition.
func of(owner table.Owner, def *api.Resource) (*Collection, error) {
	c := &Collection{Owner: owner, Definition: def}
	if def.Collection == nil {
		return c, nil
	}
	for i := range def.Collection.Indexes {
		ix := Index{Definition: &def.Collection.Indexes[i], number: uint8(i)}
		for _, path := range ix.Definition.Paths {
			p, err := jsontree.ParsePointer(path)
			if err != nil {
				return nil, err
			}
			ix.Pointers = append(ix.Pointers, p)
		}
		c.Indexes = append(c.Indexes, ix)
		c.pointers = append(c.pointers, ix.Pointers...)
	}
	return c, nil
}

// entry is one row of entries or uniques.
type entry struct {
	key       entryKey
	unique    bool // a row of uniques
	exclusive bool // no other document may have this key
}

// entriesOf computes the entries of a document, one for each index; none for a
// tombstone.
func (c *Collection) entriesOf(id string, d *Document) ([]entry, error) {
	if d == nil || d.Deleted || len(c.Indexes) == 0 {
		return nil, nil
	}
	fields, err := jsontree.Pick(d.Body, c.pointers)
	if err != nil {
		return nil, err
	}
	out := make([]entry, len(c.Indexes))
	for i := range c.Indexes {
		ix := &c.Indexes[i]
		var tuple []byte
		complete := true
		for _, f := range fields[:len(ix.Pointers)] {
			tuple = f.AppendKey(tuple)
			complete = complete && !f.IsAbsent()
		}
		fields = fields[len(ix.Pointers):]
		e := entry{entryKey{c.Owner, ix.number, string(tuple), id}, ix.Definition.Unique, ix.Definition.Unique && complete}
		if e.exclusive {
			e.key.ID = ""
		}
		out[i] = e
	}
	return out, nil
}

// checkEntries refuses a document whose entries are too long or taken.
func (c *Collection) checkEntries(s *op.Scope, old, next []entry) error {
	for i := range next {
		e := &next[i]
		name := c.Indexes[i].Definition.Name
		if n := len(e.key.Tuple); n > jsontree.TupleBytes {
			return fault.New(fault.Validation, "index_entry_too_long",
				"the fields of index %q of collection %q take %d bytes in the index, at most %d", name, c.Definition.Name, n, jsontree.TupleBytes).
				With("index", "%s", name).With("maxBytes", "%d", jsontree.TupleBytes)
		}
		if !e.exclusive || old != nil && old[i].key == e.key {
			continue
		}
		taken, err := uniques.Has(s.R, e.key)
		if err != nil {
			return err
		}
		if taken {
			return fault.New(fault.Conflict, "unique_clash",
				"another document of collection %q in this partition has the same fields in the unique index %q", c.Definition.Name, name).
				With("index", "%s", name)
		}
	}
	return nil
}

// writeEntries replaces the entries that changed.
func writeEntries(x *op.Ctx, id string, old, next []entry) {
	for i := range max(len(old), len(next)) {
		if len(old) > 0 && len(next) > 0 && old[i].key == next[i].key {
			continue
		}
		if len(old) > 0 {
			if old[i].unique {
				uniques.Delete(x.Tx, old[i].key)
			} else {
				entries.Delete(x.Tx, old[i].key)
			}
		}
		if len(next) > 0 {
			if next[i].unique {
				uniques.Insert(x.Tx, next[i].key, &holder{id})
			} else {
				entries.Insert(x.Tx, next[i].key, &table.None{})
			}
		}
	}
}

// prefix is what all keys of the index's entries start with.
func (c *Collection) prefix(ix *Index) []byte {
	id := entries.ID
	if ix.Definition.Unique {
		id = uniques.ID
	}
	return codec.AppendUint8(c.Owner.Append([]byte{byte(id)}), ix.number)
}
