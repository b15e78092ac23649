package document

import (
	"bytes"
	"encoding/binary"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/document/store"
)

func query(v *op.View, req *api.DocumentsQueryRequest) (*api.DocumentsQueryResponse, error) {
	col, err := store.Open(&v.Scope, req.Collection)
	if err != nil {
		return nil, err
	}
	p, err := choose(v.Principal, col, req)
	if err != nil {
		return nil, err
	}
	same := *req
	same.Limit, same.MaxBytes, same.Cursor, same.MinToken = 0, 0, "", nil
	r := newReading(v, col, p, req.Limit, req.MaxBytes, "documents.query"+string(api.Of(&same)))
	if err := r.run(req.Cursor); err != nil {
		return nil, err
	}
	resp := &api.DocumentsQueryResponse{Documents: r.found, Cursor: r.cursor, Examined: r.examined}
	if p.index != nil {
		resp.Index = p.index.Definition.Name
	}
	return resp, nil
}

// reading walks a plan's span and fills one page. Where the page or the budget
// of a read (contract §8) ends it, the page has a cursor, even when nothing was
// found so far: every page makes progress, so no read fails for its cost.
type reading struct {
	view     *op.View
	col      *store.Collection
	plan     plan
	pointers []jsontree.Pointer // of the conditions left to compare
	limit    int64
	maxBytes int64
	page     *op.Page

	found    []api.Document
	size     int64
	examined api.Examined // an index entry and its document are one record
	last     store.Place
	revision uint64 // of the document there
	cursor   string
}

func newReading(v *op.View, col *store.Collection, p plan, limit, maxBytes int64, about string) *reading {
	r := &reading{
		view: v, col: col, plan: p, limit: limit, maxBytes: maxBytes, found: []api.Document{},
		page: op.NewPage(v, string(col.Owner.Append(nil))+about, nil, limit),
	}
	for _, c := range p.rest {
		r.pointers = append(r.pointers, c.pointer)
	}
	return r
}

func (r *reading) run(cursor string) error {
	span := r.plan.span
	if cursor != "" {
		after, err := r.resume(cursor)
		if err != nil {
			return err
		}
		span = span.After(after)
	}
	if r.plan.empty {
		return nil
	}
	more := func() bool {
		if r.spent() {
			r.stop()
			return false
		}
		return true
	}
	return r.col.Find(&r.view.Scope, r.plan.index, span, more, r.candidate)
}

// spent says that the page is full or the budget is used up.
func (r *reading) spent() bool {
	return int64(len(r.found)) >= r.limit || r.examined.Records >= limits.ReadRecords || r.examined.Bytes >= limits.ReadBytes
}

// candidate looks at one document and says whether to go on.
func (r *reading) candidate(at store.Place, d *store.Document) (bool, error) {
	if r.spent() {
		return r.stop()
	}
	r.examined.Records++
	r.examined.Bytes += int64(at.Bytes)
	ok, err := r.matches(d)
	if err != nil {
		return false, err
	}
	if ok {
		shown, err := show(r.view.Principal, r.col, at.ID, d)
		if err != nil {
			return false, err
		}
		n := int64(len(at.ID) + len(shown.Document))
		if len(r.found) > 0 && r.size+n > r.maxBytes {
			return r.stop()
		}
		shown.Document = bytes.Clone(shown.Document) // it is valid within the call only
		r.found = append(r.found, shown)
		r.size += n
	}
	r.last, r.revision = at, d.Revision
	return true, nil
}

func (r *reading) matches(d *store.Document) (bool, error) {
	if d.Deleted || len(r.pointers) == 0 {
		return !d.Deleted, nil
	}
	fields, err := jsontree.Pick(d.Body, r.pointers)
	if err != nil {
		return false, err
	}
	for i := range r.plan.rest {
		if !r.plan.rest[i].in.Holds(fields[i]) {
			return false, nil
		}
	}
	return true, nil
}

// The forms of a cursor: after the number of the index (0 is the ids, n + 1 the
// n-th), the position, or the document that stands there. The second is for
// positions that are too long for a token, and for fields the caller may filter
// by but not see: a cursor is signed, not secret. It needs the document to be
// unchanged when the next page is read.
const (
	cursorPosition = 1
	cursorDocument = 2

	maxCursorPosition = 300
)

// stop ends the page before the current candidate.
func (r *reading) stop() (bool, error) {
	number := byte(0)
	secret := false
	if r.plan.index != nil {
		number = byte(r.plan.index.Number() + 1)
		for _, path := range r.plan.index.Definition.Paths {
			secret = secret || r.hides(path)
		}
	}
	if !secret && len(r.last.Position) <= maxCursorPosition {
		r.cursor = r.page.Next(append([]byte{cursorPosition, number}, r.last.Position...))
		return false, nil
	}
	b := binary.AppendUvarint([]byte{cursorDocument, number}, r.revision)
	r.cursor = r.page.Next(append(b, r.last.ID...))
	return false, nil
}

// hides says whether the caller may not see a field, or a part of it.
func (r *reading) hides(path string) bool {
	p, err := jsontree.ParsePointer(path)
	if err != nil {
		return true
	}
	for _, h := range access.Hidden(r.view.Principal, r.col.Definition, api.FieldRawRead) {
		hidden, err := jsontree.ParsePointer(h)
		if err != nil {
			return true
		}
		_, below := p.Below(hidden)
		_, above := hidden.Below(p)
		if below || above {
			return true
		}
	}
	return false
}

// resume reads a cursor: the position after which the page starts.
func (r *reading) resume(cursor string) ([]byte, error) {
	b, err := r.page.Begin(cursor)
	if err != nil {
		return nil, err
	}
	number := byte(0)
	if r.plan.index != nil {
		number = byte(r.plan.index.Number() + 1)
	}
	if len(b) < 2 || b[1] != number {
		return nil, fault.New(fault.CursorExpired, "plan_changed", "the query is carried out in another way since the cursor was made, because rights or indexes changed; start it again")
	}
	if b[0] == cursorPosition {
		return b[2:], nil
	}
	revision, n := binary.Uvarint(b[2:])
	if b[0] != cursorDocument || n <= 0 {
		return nil, fault.New(fault.Validation, "bad_cursor", "the cursor does not have the form of one")
	}
	id := string(b[2+n:])
	d, err := r.col.Get(&r.view.Scope, id)
	if err != nil {
		return nil, err
	}
	if !live(d) || d.Revision != revision || r.plan.index == nil {
		return nil, fault.New(fault.CursorExpired, "document_changed", "the document the last page ended with has changed, so the place is lost; start the query again")
	}
	return r.col.PositionOf(r.plan.index, id, d)
}
