package access

import (
	"bytes"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/table"
)

// configure replaces a principal's policy in the catalog shard and records the
// change for the others.
func configure(c *op.Ctx, req *api.PrincipalsConfigureRequest) (*api.PrincipalsConfigureResponse, error) {
	p := req.Principal
	key := principalKey{c.Space.Shard, p.Tenant, p.ID}
	old, err := principals.Shared(c.Tx, key)
	if err != nil {
		return nil, err
	}
	if p.Administrator && !c.Principal.Administrator {
		return nil, fault.New(fault.PermissionDenied, "administrator_only", "only an administrator may make another one")
	}
	record := table.EncodeCBOR(nil, &p)
	if old != nil {
		if bytes.Equal(record, table.EncodeCBOR(nil, old)) {
			return &api.PrincipalsConfigureResponse{Principal: p}, nil
		}
		if p.PolicyEpoch <= old.PolicyEpoch {
			return nil, fault.New(fault.RevisionConflict, "policy_epoch", "the stored policy has epoch %d; an update needs a greater one", old.PolicyEpoch).
				With("policyEpoch", "%d", old.PolicyEpoch)
		}
		if old.Administrator && !c.Principal.Administrator {
			return nil, fault.New(fault.PermissionDenied, "administrator_only", "only an administrator may change another one")
		}
	}
	// From here on it succeeds.
	principals.Put(c.Tx, key, table.Clone(&p))
	if _, err := changes.Append(c, changes.Principal, record); err != nil {
		return nil, err
	}
	return &api.PrincipalsConfigureResponse{Principal: p, Created: old == nil, Changed: true}, nil
}

// Install writes a changed policy into a data shard.
func Install(c *op.Ctx, record []byte) error {
	var p api.Principal
	if err := table.DecodeCBOR(record, &p); err != nil {
		return err
	}
	principals.Put(c.Tx, principalKey{c.Space.Shard, p.Tenant, p.ID}, &p)
	return nil
}

func get(v *op.View, req *api.PrincipalsGetRequest) (*api.PrincipalsGetResponse, error) {
	p, ok, err := principals.Get(v.R, principalKey{v.Space.Shard, req.Tenant, req.ID})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NotFound, "unknown_principal", "there is no principal %q", req.ID)
	}
	return &api.PrincipalsGetResponse{Principal: p}, nil
}

func list(v *op.View, req *api.PrincipalsListRequest) (*api.PrincipalsListResponse, error) {
	prefix := codec.AppendText(codec.AppendUint16(nil, v.Space.Shard), req.Tenant)
	page := op.NewPage(v, "principals\x00"+req.Tenant, prefix, req.Limit)
	from, err := page.Begin(req.Cursor)
	if err != nil {
		return nil, err
	}
	resp := &api.PrincipalsListResponse{Principals: []api.Principal{}}
	err = principals.Scan(v.R, table.Range{Prefix: prefix, From: from}, func(k principalKey, p *api.Principal) (bool, error) {
		if page.Full() {
			resp.Cursor = page.Next(codec.AppendText(nil, k.ID))
			return false, nil
		}
		page.Add()
		resp.Principals = append(resp.Principals, *p)
		return true, nil
	})
	return resp, err
}
