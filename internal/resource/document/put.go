package document

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/document/schema"
	"github.com/keyload/keyload/internal/resource/document/store"
)

// writer applies the mutations. It keeps compiled schemas, which are a function
// of the definitions.
type writer struct{ schemas *schema.Cache }

// put stores a document whatever was there. It is kept as it was sent but for
// white space between tokens: two documents are equal when these texts are.
func (w *writer) put(c *op.Ctx, _ int, m *api.Mutation) (api.MutationResult, error) {
	req := m.PutDocument
	col, old, err := find(c, req.Collection, req.ID)
	if err != nil {
		return api.MutationResult{}, err
	}
	if err := expect(col, req.ID, old, req.ExpectedRevision); err != nil {
		return api.MutationResult{}, err
	}
	body, err := jsontree.Compact(req.Document)
	if err != nil {
		return api.MutationResult{}, fault.Invalid("/document", "must be one JSON value")
	}
	if err := protect(c.Principal, col.Definition).put(old, body); err != nil {
		return api.MutationResult{}, err
	}
	if len(col.Definition.Collection.Schema) > 0 {
		tree, err := jsontree.Parse(body)
		if err != nil {
			return api.MutationResult{}, err
		}
		if err := w.satisfies(col, req.ID, tree, len(body)); err != nil {
			return api.MutationResult{}, err
		}
	}
	return write(c, "putDocument", col, req.ID, old, body)
}

// remove leaves a tombstone that keeps the revision.
func (w *writer) remove(c *op.Ctx, _ int, m *api.Mutation) (api.MutationResult, error) {
	req := m.DeleteDocument
	col, old, err := find(c, req.Collection, req.ID)
	if err != nil {
		return api.MutationResult{}, err
	}
	if !live(old) {
		return api.MutationResult{}, missing(col, req.ID)
	}
	if err := expect(col, req.ID, old, req.ExpectedRevision); err != nil {
		return api.MutationResult{}, err
	}
	if err := protect(c.Principal, col.Definition).erase(old); err != nil {
		return api.MutationResult{}, err
	}
	return write(c, "deleteDocument", col, req.ID, old, nil)
}

// find opens the collection and reads the document; nil when there is neither a
// document nor a tombstone.
func find(c *op.Ctx, collection, id string) (*store.Collection, *store.Document, error) {
	col, err := store.Open(&c.Scope, collection)
	if err != nil {
		return nil, nil, err
	}
	old, err := col.Get(&c.Scope, id)
	return col, old, err
}

func live(d *store.Document) bool { return d != nil && !d.Deleted }

func missing(col *store.Collection, id string) error {
	return fault.New(fault.NotFound, "unknown_document", "there is no document %q in collection %q", id, col.Definition.Name)
}

// expect compares the revision. A document that is deleted or was never written
// has revision 0.
func expect(col *store.Collection, id string, d *store.Document, expected *uint64) error {
	current := uint64(0)
	if live(d) {
		current = d.Revision
	}
	switch {
	case expected == nil || *expected == current:
		return nil
	case current == 0:
		return fault.New(fault.RevisionConflict, "revision", "document %q of collection %q does not exist, so it has no revision %d", id, col.Definition.Name, *expected).
			With("revision", "0")
	case *expected == 0:
		return fault.New(fault.RevisionConflict, "exists", "document %q of collection %q exists, at revision %d", id, col.Definition.Name, current).
			With("revision", "%d", current)
	default:
		return fault.New(fault.RevisionConflict, "revision", "document %q of collection %q is at revision %d, not %d", id, col.Definition.Name, current, *expected).
			With("revision", "%d", current)
	}
}

// satisfies holds a document to the collection's schema.
func (w *writer) satisfies(col *store.Collection, id string, tree *jsontree.Node, size int) error {
	text := col.Definition.Collection.Schema
	if len(text) == 0 {
		return nil
	}
	s, err := w.schemas.Get(text)
	if err != nil {
		return err
	}
	found, err := s.Check(tree, size)
	if err != nil || len(found) == 0 {
		return err
	}
	place := found[0].Path
	if place == "" {
		place = "the document"
	}
	e := fault.New(fault.Validation, "schema_violated", "document %q does not satisfy the JSON Schema of collection %q: %s %s", id, col.Definition.Name, place, found[0].Message)
	e.Violations = found
	return e
}

// write stores the next revision; no body is a tombstone.
func write(c *op.Ctx, kind string, col *store.Collection, id string, old *store.Document, body []byte) (api.MutationResult, error) {
	next := &store.Document{Revision: 1, UpdatedAt: c.Now, Deleted: body == nil, Body: body}
	if old != nil {
		if old.Revision >= limits.Number {
			return api.MutationResult{}, fault.New(fault.ResourceExhausted, "revision_limit", "document %q has reached the last revision", id)
		}
		next.Revision = old.Revision + 1
	}
	if err := col.Write(c, id, old, next); err != nil {
		return api.MutationResult{}, err
	}
	return api.MutationResult{Kind: kind, Revision: next.Revision}, nil
}
