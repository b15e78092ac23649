package batch

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
)

// Resource is what this package brings to the registry.
func Resource() op.Resource {
	return op.Resource{
		Name: "batch",
		Handlers: []op.Handler{
			op.Handle(api.CommandsCommit, op.Command[api.CommandsCommitRequest, api.CommandsCommitResponse]{Apply: commit}),
		},
	}
}

// commit applies the mutations in order. The first refusal refuses the batch and
// says which mutation it was, unless there is but one; the machine then drops
// every write of it.
func commit(c *op.Ctx, req *api.CommandsCommitRequest) (*api.CommandsCommitResponse, error) {
	which := "mutation"
	if len(req.Mutations) == 1 {
		which = ""
	}
	results, err := c.MutateAll(which, req.Mutations)
	if err != nil {
		return nil, err
	}
	return &api.CommandsCommitResponse{Results: results}, nil
}
