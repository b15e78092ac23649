package directory

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

type definitions struct{ checks Checks }

// Resource is what this package brings to the registry. checks are the rules of
// the kinds' own packages.
func Resource(checks Checks) op.Resource {
	d := &definitions{checks}
	return op.Resource{
		Name:   "directory",
		Tables: []table.Info{byName.Info(), byID.Info(), deletions.Info()},
		Handlers: []op.Handler{
			op.Handle(api.ResourcesConfigure, op.Command[api.ResourcesConfigureRequest, api.ResourcesConfigureResponse]{Apply: d.configure, Urgent: true}), // it pauses
			op.Ask(api.ResourcesGet, op.Query[api.ResourcesGetRequest, api.ResourcesGetResponse]{Run: get}),
			op.Ask(api.ResourcesList, op.Query[api.ResourcesListRequest, api.ResourcesListResponse]{Run: list}),
			op.Handle(api.ResourcesDelete, op.Command[api.ResourcesDeleteRequest, api.ResourcesDeleteResponse]{Apply: remove}),
			op.Handle(Freeze, op.Command[FreezeRequest, FreezeResponse]{
				Apply: freeze, Transient: func(*FreezeResponse) bool { return true },
			}),
		},
		Dues:   []op.Due{{Kind: table.DueDeletion, Apply: erase}},
		Before: before, Check: check,
	}
}

// Each calls fn for every definition a shard has.
func Each(r kv.Reader, shard uint16, fn func(*api.Resource) (bool, error)) error {
	prefix := table.Space{Shard: shard}.Append(nil)[:2]
	return byName.Scan(r, table.Range{Prefix: prefix}, func(_ Name, d *api.Resource) (bool, error) { return fn(d) })
}

// GetCommandID and SetCommandID make the request a command's.
func (r *FreezeRequest) GetCommandID() string   { return r.CommandID }
func (r *FreezeRequest) SetCommandID(id string) { r.CommandID = id }
