package machine

import (
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/wire"
)

// Resource is what the machine brings to the registry: its tables, and the
// question what became of a command.
func Resource(durability api.Durability) op.Resource {
	return op.Resource{
		Name: "machine", Tables: Tables(), Check: check,
		Handlers: []op.Handler{
			op.Ask(api.CommandsOutcome, op.Query[api.CommandsOutcomeRequest, api.CommandsOutcomeResponse]{
				Run: func(v *op.View, req *api.CommandsOutcomeRequest) (*api.CommandsOutcomeResponse, error) {
					return outcome(v, req, durability)
				},
			}),
		},
	}
}

// outcome answers from the caller's own receipts.
func outcome(v *op.View, req *api.CommandsOutcomeRequest, durability api.Durability) (*api.CommandsOutcomeResponse, error) {
	id, err := uuid.Parse(req.CommandID)
	if err != nil {
		return nil, fault.Invalid("/commandId", "is not a UUID")
	}
	cmd := Command{
		ID: id, Tenant: v.Principal.Tenant, Principal: v.Principal.ID,
		Partition: v.Partition, Hash: v.Space.Partition,
	}
	r, ok, err := receipts.Get(v.R, keyOf(v.Space.Shard, &cmd))
	if err != nil {
		return nil, err
	}
	if !ok {
		return &api.CommandsOutcomeResponse{Status: api.CommandUnknown}, nil
	}
	if err := ofThisHistory(v.R, v.Space.Shard, &r); err != nil {
		return nil, err
	}
	resp := &api.CommandsOutcomeResponse{Status: api.CommandCommitted}
	if h, ok := v.Registry.Numbered(r.Op); ok {
		resp.Operation = h.Op.Name
	}
	if r.Rejected {
		resp.Status, resp.Error = api.CommandRejected, new(fault.Error)
		return resp, wire.DecodeLog(r.Body, resp.Error)
	}
	head := header(&cmd, v.Incarnation, durability, &r)
	resp.Receipt = &head
	return resp, nil
}
