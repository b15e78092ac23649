package document

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/document/store"
)

func get(v *op.View, req *api.DocumentsGetRequest) (*api.DocumentsGetResponse, error) {
	col, err := store.Open(&v.Scope, req.Collection)
	if err != nil {
		return nil, err
	}
	d, err := col.Get(&v.Scope, req.ID)
	if err != nil {
		return nil, err
	}
	if !live(d) {
		return nil, missing(col, req.ID)
	}
	shown, err := show(v.Principal, col, req.ID, d)
	return &api.DocumentsGetResponse{Document: shown}, err
}

// show is a document as the caller may see it: protected fields it may not read
// are taken out and named.
func show(p *api.Principal, col *store.Collection, id string, d *store.Document) (api.Document, error) {
	body, redacted, err := access.Project(p, col.Definition, d.Body)
	return api.Document{ID: id, Revision: d.Revision, Document: body, UpdatedAt: api.Time(d.UpdatedAt), Redacted: redacted}, err
}

// list reads documents in the byte order of their ids. Tombstones on the way
// count as looked at.
func list(v *op.View, req *api.DocumentsListRequest) (*api.DocumentsListResponse, error) {
	col, err := store.Open(&v.Scope, req.Collection)
	if err != nil {
		return nil, err
	}
	p := plan{}
	if req.Prefix != "" {
		p.span = store.Under([]byte(req.Prefix))
	}
	same := *req
	same.Limit, same.MaxBytes, same.Cursor, same.MinToken = 0, 0, "", nil
	r := newReading(v, col, p, req.Limit, req.MaxBytes, "documents.list"+string(api.Of(&same)))
	if err := r.run(req.Cursor); err != nil {
		return nil, err
	}
	return &api.DocumentsListResponse{Documents: r.found, Cursor: r.cursor, Examined: r.examined}, nil
}
