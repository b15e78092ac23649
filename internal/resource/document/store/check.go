package store

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// The invariants this package answers for.
const (
	documentCounters   = "document-counters"   // the counters equal a full scan
	documentEntries    = "document-entries"    // each document has its entries, each entry its document
	documentTombstones = "document-tombstones" // each tombstone has its place in the order of removal, and is armed
	documentOwner      = "document-owner"      // every row belongs to a collection with a head
)

// Check reads every collection of one shard in full.
func Check(a *op.Audit) error {
	type found struct {
		owner table.Owner
		head  Head
	}
	prefix := codec.AppendUint16(nil, a.Space.Shard)
	var all []found
	known := map[table.Owner]bool{}
	err := heads.Scan(a.R, table.Range{Prefix: prefix}, func(o table.Owner, h *Head) (bool, error) {
		all = append(all, found{o, *h})
		known[o] = true
		return true, nil
	})
	if err != nil {
		return err
	}
	for i := range all {
		def, err := directory.ByID(a.R, a.Space.Shard, all[i].owner.Resource)
		if err != nil {
			return err
		}
		if def == nil || def.Kind != api.KindCollection {
			continue // deleted: its rows are being removed
		}
		if err := checkCollection(a, all[i].owner, def, &all[i].head); err != nil {
			return err
		}
	}
	return checkOwners(a, known)
}

func checkCollection(a *op.Audit, o table.Owner, def *api.Resource, h *Head) error {
	c, err := of(o, def)
	if err != nil {
		return err
	}
	x := &checker{Audit: a, c: c, where: fmt.Sprintf("collection %q in partition %x", def.Name, o.Partition)}
	if err := x.documents(); err != nil {
		return err
	}
	if x.seen.Documents != h.Documents || x.seen.Bytes != h.Bytes || x.seen.Tombstones != h.Tombstones {
		a.Report(documentCounters, x.where, "counts %d documents of %d bytes and %d tombstones; the head says %d, %d and %d",
			x.seen.Documents, x.seen.Bytes, x.seen.Tombstones, h.Documents, h.Bytes, h.Tombstones)
	}
	for i := range c.Indexes {
		if err := x.index(&c.Indexes[i]); err != nil {
			return err
		}
	}
	if err := x.tombstones(h); err != nil {
		return err
	}
	a.Count("documents", int64(x.seen.Documents))
	a.Count("documentBytes", int64(x.seen.Bytes))
	a.Count("tombstones", int64(x.seen.Tombstones))
	return nil
}

type checker struct {
	*op.Audit
	c     *Collection
	where string
	seen  Head
}

// documents counts, and looks for the entries of each document.
func (x *checker) documents() error {
	return x.c.Documents(&x.Scope, Span{}, func(id string, d *Document, _ int) (bool, error) {
		if d.Deleted {
			x.seen.Tombstones++
			ok, err := tombstones.Has(x.R, tombstoneKey{x.c.Owner, d.UpdatedAt, id})
			if !ok && err == nil {
				x.Report(documentTombstones, x.where, "a tombstone has no place in the order of removal")
			}
			return true, err
		}
		x.seen.Documents++
		x.seen.Bytes += uint64(len(d.Body))
		list, err := x.c.entriesOf(id, d)
		if err != nil {
			x.Report(documentEntries, x.where, "a document cannot be read")
			return true, nil
		}
		for i := range list {
			if err := x.entry(&list[i], id); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

func (x *checker) entry(e *entry, id string) error {
	var ok bool
	var err error
	if e.unique {
		var h holder
		h, ok, err = uniques.Get(x.R, e.key)
		ok = ok && h.ID == id
	} else {
		ok, err = entries.Has(x.R, e.key)
	}
	if err == nil && !ok {
		x.Report(documentEntries, x.where, "a document has no entry in index %q", x.c.Indexes[e.key.Index].Definition.Name)
	}
	return err
}

// index counts the entries: when each document has its own, an equal count means
// that there is no other.
func (x *checker) index(ix *Index) error {
	n := uint64(0)
	err := x.c.entries(&x.Scope, ix, Span{}, func(entryAt) (bool, error) { n++; return true, nil })
	if err == nil && n != x.seen.Documents {
		x.Report(documentEntries, x.where, "index %q has %d entries for %d documents", ix.Definition.Name, n, x.seen.Documents)
	}
	x.Count("indexEntries", int64(n))
	return err
}

// tombstones counts their places, and looks for the due row.
func (x *checker) tombstones(h *Head) error {
	n := uint64(0)
	err := tombstones.Scan(x.R, table.Range{Prefix: x.c.Owner.Append(nil)}, func(tombstoneKey, *table.None) (bool, error) {
		n++
		return true, nil
	})
	if err != nil {
		return err
	}
	if n != x.seen.Tombstones {
		x.Report(documentTombstones, x.where, "%d places in the order of removal for %d tombstones", n, x.seen.Tombstones)
	}
	if h.Armed == 0 && n > 0 {
		x.Report(documentTombstones, x.where, "%d tombstones and no instant at which they are removed", n)
	}
	if h.Armed == 0 {
		return nil
	}
	ok, err := table.DueRows.Has(x.R, table.DueKey{Shard: x.c.Owner.Shard, When: h.Armed, Kind: table.DueTombstone, Owner: string(x.c.Owner.Append(nil))})
	if err == nil && !ok {
		x.Report(documentTombstones, x.where, "armed for instant %d without a due row", h.Armed)
	}
	return err
}

// checkOwners looks for rows no head speaks of, and due rows no head has armed.
func checkOwners(a *op.Audit, known map[table.Owner]bool) error {
	for _, t := range []table.Info{documents.Info(), entries.Info(), uniques.Info(), tombstones.Info()} {
		prefix := codec.AppendUint16([]byte{byte(t.ID)}, a.Space.Shard)
		var last table.Owner
		err := a.R.Scan(prefix, codec.PrefixEnd(prefix), false, func(key, _ []byte) (bool, error) {
			kr := codec.NewKeyReader(key[1:])
			o := table.ReadOwner(&kr)
			if o == last || known[o] {
				return true, nil
			}
			last = o
			def, err := directory.ByID(a.R, a.Space.Shard, o.Resource)
			if def != nil && err == nil {
				a.Report(documentOwner, fmt.Sprintf("collection %q in partition %x", def.Name, o.Partition), "rows in %s without a head", t.Name)
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return checkDue(a)
}

func checkDue(a *op.Audit) error {
	return table.DueRows.Scan(a.R, table.Range{Prefix: codec.AppendUint16(nil, a.Space.Shard)}, func(k table.DueKey, _ *table.None) (bool, error) {
		if k.Kind != table.DueTombstone {
			return true, nil
		}
		kr := codec.NewKeyReader([]byte(k.Owner))
		o := table.ReadOwner(&kr)
		h, ok, err := heads.Get(a.R, o)
		if err == nil && (!ok || h.Armed != k.When) {
			a.Report(documentTombstones, fmt.Sprintf("resource %d in partition %x", o.Resource, o.Partition), "a due row at instant %d that no head has armed", k.When)
		}
		return true, err
	})
}
