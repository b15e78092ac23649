package directory

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

func get(v *op.View, req *api.ResourcesGetRequest) (*api.ResourcesGetResponse, error) {
	r, err := Lookup(v.R, v.Space.Shard, req.Tenant, req.Database, req.Name)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fault.New(fault.NotFound, "unknown_resource", "there is no resource %q in database %q", req.Name, req.Database)
	}
	return &api.ResourcesGetResponse{Resource: *table.Clone(r)}, nil
}

func list(v *op.View, req *api.ResourcesListRequest) (*api.ResourcesListResponse, error) {
	prefix := codec.AppendText(codec.AppendText(codec.AppendUint16(nil, v.Space.Shard), req.Tenant), req.Database)
	page := op.NewPage(v, "resources\x00"+req.Tenant+"\x00"+req.Database+"\x00"+string(req.Kind), prefix, req.Limit)
	from, err := page.Begin(req.Cursor)
	if err != nil {
		return nil, err
	}
	resp := &api.ResourcesListResponse{Resources: []api.Resource{}}
	err = byName.Scan(v.R, table.Range{Prefix: prefix, From: from}, func(k Name, r *api.Resource) (bool, error) {
		if page.Full() {
			resp.Cursor = page.Next(codec.AppendText(nil, k.Name))
			return false, nil
		}
		page.Look()
		if req.Kind == "" || req.Kind == r.Kind {
			page.Add()
			resp.Resources = append(resp.Resources, *r)
		}
		return true, nil
	})
	return resp, err
}
