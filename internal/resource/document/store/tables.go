package store

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/table"
)

// What each operation costs, in rows. "head" is one row, kept in memory.
//
//	get               reads 1 document
//	put, patch        reads 1 head and 1 document, and 1 entry for every unique
//	                  index whose entry changes; writes 1 document, 1 head, and
//	                  1 entry for every index whose entry changes; deletes the
//	                  entries these replace; of a tombstone, deletes 1 tombstone
//	                  entry
//	delete            reads 1 head and 1 document; writes 1 document (the
//	                  tombstone), 1 tombstone entry, 1 head, at most 1 due row;
//	                  deletes 1 entry for every index
//	removal of n      reads 1 head, looks at n + 1 tombstone entries; deletes n
//	tombstones        documents and n tombstone entries; writes 1 head and at
//	                  most 1 due row
//	list of n         looks at n documents and the tombstones between them
//	query of n        reads 1 entry and 1 document for each record looked at;
//	                  without an index it looks at documents like list
//
// None depends on how many documents the collection holds.

// documentKey is one document of a collection in a partition.
type documentKey struct {
	Owner table.Owner
	ID    string
}

// Document is a stored document, or the tombstone of one.
type Document struct {
	Revision  uint64
	UpdatedAt int64 // logged time of the last change, milliseconds
	Deleted   bool  // a tombstone: Body is empty
	Body      []byte
}

const documentVersion = 1

func (d *Document) encode(dst []byte) []byte {
	dst = codec.AppendBool(append(dst, documentVersion), d.Deleted)
	dst = codec.AppendUvarint(dst, d.Revision)
	return codec.AppendBytes(codec.AppendVarint(dst, d.UpdatedAt), d.Body)
}

func (d *Document) decode(b []byte) error {
	r := codec.NewReader(b)
	r.Version(documentVersion)
	d.Deleted, d.Revision, d.UpdatedAt = r.Bool(), r.Uvarint(), r.Varint()
	d.Body = r.Bytes()
	if d.Deleted != (len(d.Body) == 0) || d.Revision == 0 {
		return codec.ErrRecord
	}
	return r.End()
}

// documents holds bodies and tombstones by id. The id ends the key as it is.
var documents = table.Table[documentKey, Document]{
	ID: table.Document, Name: "document",
	Key: func(dst []byte, k documentKey) []byte { return append(k.Owner.Append(dst), k.ID...) },
	ParseKey: func(r *codec.KeyReader) documentKey {
		o := table.ReadOwner(r)
		return documentKey{o, string(r.Bytes(len(r.Rest())))}
	},
	Encode: func(dst []byte, d *Document) []byte { return d.encode(dst) },
	Decode: func(b []byte, d *Document) error { return d.decode(b) },
}

// Head is what is known of a collection in a partition without looking at its
// documents.
type Head struct {
	Documents  uint64 // live ones
	Bytes      uint64 // of their bodies
	Tombstones uint64
	Armed      int64 // instant of the due row for tombstones; 0 is none
}

const headVersion = 1

func (h *Head) encode(dst []byte) []byte {
	dst = codec.AppendUvarint(append(dst, headVersion), h.Documents)
	dst = codec.AppendUvarint(codec.AppendUvarint(dst, h.Bytes), h.Tombstones)
	return codec.AppendVarint(dst, h.Armed)
}

func (h *Head) decode(b []byte) error {
	r := codec.NewReader(b)
	r.Version(headVersion)
	h.Documents, h.Bytes, h.Tombstones, h.Armed = r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Varint()
	return r.End()
}

// heads holds one row for every collection that has rows in a partition.
var heads = table.Table[table.Owner, Head]{
	ID: table.DocumentHead, Name: "documentHead", Hot: true,
	Key:      func(dst []byte, k table.Owner) []byte { return k.Append(dst) },
	ParseKey: table.ReadOwner,
	Encode:   func(dst []byte, h *Head) []byte { return h.encode(dst) },
	Decode:   func(b []byte, h *Head) error { return h.decode(b) },
}

// entryKey is one document's place in one index. The tuple is the key form of
// the indexed fields. In a unique index the id is part of the key only while a
// field of the tuple is absent: such documents do not exclude each other.
type entryKey struct {
	Owner table.Owner
	Index uint8 // place of the index in the collection's definition, which is fixed
	Tuple string
	ID    string
}

func (k entryKey) append(dst []byte) []byte {
	dst = codec.AppendUint8(k.Owner.Append(dst), k.Index)
	return append(jsontree.AppendTupleEnd(append(dst, k.Tuple...)), k.ID...)
}

func readEntryKey(r *codec.KeyReader) entryKey {
	k := entryKey{Owner: table.ReadOwner(r), Index: r.Uint8()}
	k.Tuple = string(jsontree.ReadTuple(r))
	k.ID = string(r.Bytes(len(r.Rest())))
	return k
}

// entries holds the entries of indexes that are not unique.
var entries = table.Table[entryKey, table.None]{
	ID: table.DocumentIndex, Name: "documentIndex",
	Key:      func(dst []byte, k entryKey) []byte { return k.append(dst) },
	ParseKey: readEntryKey,
	Encode:   table.EncodeNone, Decode: table.DecodeNone,
}

// holder is the document that an entry of a unique index belongs to.
type holder struct{ ID string }

// uniques holds the entries of unique indexes.
var uniques = table.Table[entryKey, holder]{
	ID: table.DocumentUniq, Name: "documentUnique",
	Key:      func(dst []byte, k entryKey) []byte { return k.append(dst) },
	ParseKey: readEntryKey,
	Encode:   func(dst []byte, h *holder) []byte { return append(dst, h.ID...) },
	Decode:   func(b []byte, h *holder) error { h.ID = string(b); return nil },
}

// tombstoneKey is the place of a tombstone in the order of their removal.
type tombstoneKey struct {
	Owner     table.Owner
	DeletedAt int64
	ID        string
}

// tombstones finds the oldest tombstones.
var tombstones = table.Table[tombstoneKey, table.None]{
	ID: table.DocumentTomb, Name: "documentTombstone",
	Key: func(dst []byte, k tombstoneKey) []byte {
		return append(codec.AppendInt64(k.Owner.Append(dst), k.DeletedAt), k.ID...)
	},
	ParseKey: func(r *codec.KeyReader) tombstoneKey {
		k := tombstoneKey{Owner: table.ReadOwner(r), DeletedAt: r.Int64()}
		k.ID = string(r.Bytes(len(r.Rest())))
		return k
	},
	Encode: table.EncodeNone, Decode: table.DecodeNone,
}

// Tables are the tables this package owns.
func Tables() []table.Info {
	return []table.Info{documents.Info(), heads.Info(), entries.Info(), uniques.Info(), tombstones.Info()}
}
