package store

import (
	"bytes"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// The invariants this package answers for.
const (
	documentCounters   = "document-counters"   // the counters equal a full scan
	documentBody       = "document-body"       // every document is one JSON value, and no older than the shard
	documentEntries    = "document-entries"    // each document has its entries, each entry its document
	documentTombstones = "document-tombstones" // each tombstone has its place in the order of removal, and is armed
	documentOwner      = "document-owner"      // every row belongs to a collection with a head
)

// Check reads every collection of one shard in full. Index entries, unique entries
// and the order of tombstones follow from the documents.
func Check(a *op.Audit) error {
	x := &checker{Audit: a, heads: map[table.Owner]*Head{}, collections: map[uint32]*Collection{}}
	a.Derives(op.Derived{Table: entries.Info(), Invariant: documentEntries, Skip: x.unknown, Subject: entryOf})
	a.Derives(op.Derived{Table: uniques.Info(), Invariant: documentEntries, Skip: x.unknown, Subject: entryOf})
	a.Derives(op.Derived{Table: tombstones.Info(), Invariant: documentTombstones, Subject: tombstoneOf})
	var order []table.Owner
	err := op.Each(a, &heads, func(o table.Owner, h *Head) error {
		x.heads[o] = h
		order = append(order, o)
		a.ImplyDue(table.DueTombstone, o.Append(nil), h.Armed)
		return nil
	})
	if err == nil {
		err = op.Each(a, &documents, x.document)
	}
	x.leave()
	if err != nil {
		return err
	}
	for _, o := range order {
		if h := x.heads[o]; h != nil {
			x.compare(o, h, &Head{})
		}
	}
	return nil
}

// checker goes over the documents, owner by owner.
type checker struct {
	*op.Audit
	heads       map[table.Owner]*Head // those still to come
	collections map[uint32]*Collection

	owner table.Owner
	seen  Head // of the owner; zero before the first
}

func (x *checker) document(k documentKey, d *Document) error {
	if k.Owner != x.owner || x.seen == (Head{}) {
		x.leave()
		x.owner = k.Owner
	}
	where := func() string { return x.OwnerName(k.Owner) }
	if x.Future(d.UpdatedAt) {
		x.Past(where(), "the last change of a document", d.UpdatedAt)
	}
	if d.Deleted {
		x.seen.Tombstones++
		op.Imply(x.Audit, &tombstones, tombstoneKey{k.Owner, d.UpdatedAt, k.ID}, &table.None{})
		return nil
	}
	x.seen.Documents++
	x.seen.Bytes += uint64(len(d.Body))
	if compact, err := jsontree.Compact(d.Body); err != nil || !bytes.Equal(compact, d.Body) {
		x.Report(documentBody, where(), "a document is not one JSON value without white space")
	}
	c, err := x.collection(k.Owner)
	if err != nil || c == nil {
		return err
	}
	list, err := c.entriesOf(k.ID, d)
	if err != nil {
		x.Distrust() // its entries are not known
		x.Report(documentEntries, where(), "a document cannot be read")
		return nil
	}
	for i := range list {
		e := &list[i]
		x.Count("indexEntries", 1)
		if e.unique {
			op.Imply(x.Audit, &uniques, e.key, &holder{k.ID})
		} else {
			op.Imply(x.Audit, &entries, e.key, &table.None{})
		}
	}
	return nil
}

// entryOf is the document, and which of its indexes, that an entry is of.
func entryOf(dst, key, value []byte) []byte {
	const index = 1 + table.OwnerBytes
	kr := codec.NewKeyReader(key[1:])
	table.ReadOwner(&kr)
	kr.Uint8()
	jsontree.ReadTuple(&kr)
	if kr.Err() != nil {
		return append(dst, key...)
	}
	dst = append(dst, key[:index+1]...)
	if len(value) > 0 { // of a unique entry
		return append(dst, value...)
	}
	return append(dst, kr.Rest()...)
}

// tombstoneOf is the document that a place in the order of removal is of.
func tombstoneOf(dst, key, _ []byte) []byte {
	const owner = 1 + table.OwnerBytes
	return append(append(dst, key[:min(owner, len(key))]...), key[min(owner+8, len(key)):]...)
}

// unknown passes over the entries of collections that have documents and no
// definition: which entries they have cannot be told.
func (x *checker) unknown(key, _ []byte) (bool, error) {
	kr := codec.NewKeyReader(key[1:])
	c, ok := x.collections[table.ReadOwner(&kr).Resource]
	return ok && c == nil && kr.Err() == nil, nil
}

// collection is the collection of an owner; nil when there is none, which the audit
// tells, or when its indexes cannot be: their entries are not known then.
func (x *checker) collection(o table.Owner) (*Collection, error) {
	c, ok := x.collections[o.Resource]
	if !ok {
		def, err := directory.ByID(x.R, o.Shard, o.Resource)
		if err = x.Survive(err); err != nil {
			return nil, err
		}
		if def != nil && def.Kind == api.KindCollection {
			if c, err = of(o, def); err != nil {
				x.Report(documentEntries, x.OwnerName(o), "an index of the collection cannot be: a path of it %v", err)
			}
		}
		x.collections[o.Resource] = c
	}
	if c == nil {
		return nil, nil
	}
	c.Owner = o
	return c, nil
}

// leave compares the owner whose documents were read with its head.
func (x *checker) leave() {
	if x.seen == (Head{}) {
		return
	}
	if h := x.heads[x.owner]; h != nil {
		x.compare(x.owner, h, &x.seen)
		delete(x.heads, x.owner)
	} else {
		x.Report(documentOwner, x.OwnerName(x.owner), "documents without a head")
	}
	x.Count("documents", int64(x.seen.Documents))
	x.Count("documentBytes", int64(x.seen.Bytes))
	x.Count("tombstones", int64(x.seen.Tombstones))
	x.seen = Head{}
}

func (x *checker) compare(o table.Owner, h, seen *Head) {
	where := x.OwnerName(o)
	if seen.Documents != h.Documents || seen.Bytes != h.Bytes || seen.Tombstones != h.Tombstones || *h == (Head{}) {
		x.Report(documentCounters, where, "counts %d documents of %d bytes and %d tombstones; the head says %d, %d and %d",
			seen.Documents, seen.Bytes, seen.Tombstones, h.Documents, h.Bytes, h.Tombstones)
	}
	if h.Armed == 0 && seen.Tombstones > 0 {
		x.Report(documentTombstones, where, "%d tombstones and no instant at which they are removed", seen.Tombstones)
	}
}
