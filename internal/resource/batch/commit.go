package batch

import (
	"strconv"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
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

// commit applies the mutations in order. The first refusal refuses the batch;
// the machine then drops every write of it.
func commit(c *op.Ctx, req *api.CommandsCommitRequest) (*api.CommandsCommitResponse, error) {
	results, err := Apply(c, req.Mutations)
	if err != nil {
		return nil, err
	}
	return &api.CommandsCommitResponse{Results: results}, nil
}

// Apply applies mutations as part of a command. A refusal says which mutation
// was refused.
func Apply(c *op.Ctx, mutations []api.Mutation) ([]api.MutationResult, error) {
	results := make([]api.MutationResult, len(mutations))
	for i := range mutations {
		r, err := c.Mutate(i, &mutations[i])
		if err != nil {
			if f := fault.From(err); f != nil && len(mutations) > 1 {
				f.With("mutation", "%s", strconv.Itoa(i))
			}
			return nil, err
		}
		results[i] = r
	}
	return results, nil
}
