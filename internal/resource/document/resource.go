package document

import (
	"strconv"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/document/schema"
	"github.com/keyload/keyload/internal/resource/document/store"
)

// Resource is what this package brings to the registry.
func Resource() op.Resource {
	w := &writer{schemas: new(schema.Cache)}
	return op.Resource{
		Name:   "document",
		Tables: store.Tables(),
		Handlers: []op.Handler{
			op.Ask(api.DocumentsGet, op.Query[api.DocumentsGetRequest, api.DocumentsGetResponse]{Run: get}),
			op.Ask(api.DocumentsList, op.Query[api.DocumentsListRequest, api.DocumentsListResponse]{Run: list}),
			op.Ask(api.DocumentsQuery, op.Query[api.DocumentsQueryRequest, api.DocumentsQueryResponse]{Run: query}),
		},
		Mutations: []op.Mutation{
			{Kind: "putDocument", Apply: w.put},
			{Kind: "patchDocument", Apply: w.patch},
			{Kind: "deleteDocument", Apply: w.remove},
		},
		Dues:  store.Dues(),
		Check: store.Check,
		Kinds: []api.ResourceKind{api.KindCollection},
		Purge: store.Purge,
	}
}

// CheckPolicy refuses a policy whose JSON Schema does not compile, refers to
// anything outside itself or may cost too much to check, and an index that names
// a field twice. Errors: Validation.
func CheckPolicy(p *api.CollectionPolicy) error {
	if p == nil {
		return nil
	}
	for i, ix := range p.Indexes {
		seen := map[string]bool{}
		for j, path := range ix.Paths {
			if seen[path] {
				return fault.Invalid("/collection/indexes/"+strconv.Itoa(i)+"/paths/"+strconv.Itoa(j), "is in the index already")
			}
			seen[path] = true
		}
	}
	if len(p.Schema) == 0 {
		return nil
	}
	_, err := schema.Compile(p.Schema)
	return err
}
