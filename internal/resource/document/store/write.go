package store

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Get reads a document or tombstone; nil when there is neither.
func (c *Collection) Get(s *op.Scope, id string) (*Document, error) {
	d, ok, err := documents.Get(s.R, documentKey{c.Owner, id})
	if err != nil || !ok {
		return nil, err
	}
	return &d, nil
}

// Head reads the counters; zero when the partition holds nothing of the
// collection.
func (c *Collection) Head(s *op.Scope) (Head, error) {
	h, _, err := heads.Get(s.R, c.Owner)
	return h, err
}

// Write replaces old (what Get answered) by next, a document or a tombstone made
// at the command's instant, with its entries and counters. Refusals, before
// anything is written: Validation for fields too long for their index, Conflict
// for a clash in a unique index.
func (c *Collection) Write(x *op.Ctx, id string, old, next *Document) error {
	before, err := c.entriesOf(id, old)
	if err != nil {
		return err
	}
	after, err := c.entriesOf(id, next)
	if err != nil {
		return err
	}
	if err := c.checkEntries(&x.Scope, before, after); err != nil {
		return err
	}
	h, err := c.Head(&x.Scope)
	if err != nil {
		return err
	}
	if err := h.replace(old, next); err != nil {
		return err
	}
	// From here on it succeeds.
	key := documentKey{c.Owner, id}
	if old == nil {
		documents.Insert(x.Tx, key, next)
	} else {
		documents.Put(x.Tx, key, next)
	}
	writeEntries(x, id, before, after)
	if old != nil && old.Deleted {
		tombstones.Delete(x.Tx, tombstoneKey{c.Owner, old.UpdatedAt, id})
	}
	if next.Deleted {
		tombstones.Insert(x.Tx, tombstoneKey{c.Owner, next.UpdatedAt, id}, &table.None{})
		table.ArmBy(x.Tx, c.Owner.Shard, table.DueTombstone, c.Owner.Append(nil), &h.Armed, removedAt(c.Definition, next.UpdatedAt))
	}
	heads.Put(x.Tx, c.Owner, &h)
	return nil
}

// replace counts next instead of old.
func (h *Head) replace(old, next *Document) error {
	switch {
	case old == nil:
	case old.Deleted && h.Tombstones > 0:
		h.Tombstones--
	case !old.Deleted && h.Documents > 0 && h.Bytes >= uint64(len(old.Body)):
		h.Documents--
		h.Bytes -= uint64(len(old.Body))
	default:
		return fmt.Errorf("document: the counters of a collection are below what it holds")
	}
	if next.Deleted {
		h.Tombstones++
	} else {
		h.Documents++
		h.Bytes += uint64(len(next.Body))
	}
	return nil
}

// removedAt is the instant from which a tombstone is removed.
func removedAt(def *api.Resource, deletedAt int64) int64 {
	if def.Collection == nil {
		return deletedAt
	}
	return min(deletedAt+def.Collection.TombstoneRetentionSeconds*1000, int64(api.MaxTime))
}
