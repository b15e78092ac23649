package topic

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/source"
)

// Resource is what this package brings to the registry.
func Resource() op.Resource {
	return op.Resource{
		Name: "topic",
		Mutations: []op.Mutation{
			{Kind: "publish", Apply: publish},
			{Kind: "purgeTopic", Apply: purge},
		},
		Handlers: []op.Handler{
			op.Ask(api.EventsRead, op.Query[api.EventsReadRequest, api.EventsReadResponse]{
				Run: read,
				Wait: &op.Wait[api.EventsReadRequest, api.EventsReadResponse]{
					Millis: func(r *api.EventsReadRequest) int64 { return r.WaitMillis },
					Keys:   keys,
					Again:  func(r *api.EventsReadResponse) bool { return len(r.Events) == 0 },
				},
			}),
		},
	}
}

// publish stores events at the tail; each gets a position of its own.
func publish(c *op.Ctx, i int, m *api.Mutation) (api.MutationResult, error) {
	if err := dispatch.MayTake(&c.Scope); err != nil {
		return api.MutationResult{}, err
	}
	p := m.Publish
	r, k, err := source.Topic(&c.Scope, p.Topic, p.Generation)
	if err != nil {
		return api.MutationResult{}, err
	}
	a, err := source.Append(c, r, k, i, api.ExpectAny(), p.Events)
	return api.MutationResult{Kind: "publish", FirstPosition: a.First, Position: a.Last, EventIDs: a.IDs}, err
}

// purge cuts the head of a topic.
func purge(c *op.Ctx, _ int, m *api.Mutation) (api.MutationResult, error) {
	p := m.PurgeTopic
	r, k, err := source.Topic(&c.Scope, p.Topic, p.Generation)
	if err != nil {
		return api.MutationResult{}, err
	}
	cut, err := source.Purge(c, r, k, p.ThroughPosition)
	return api.MutationResult{Kind: "purgeTopic", Position: cut}, err
}

// read answers a page of a topic, or of a stream as a source.
func read(v *op.View, req *api.EventsReadRequest) (*api.EventsReadResponse, error) {
	r, k, err := source.Resolve(&v.Scope, req.Source)
	if err != nil {
		return nil, err
	}
	p, err := source.ReadPage(v, r, k, source.Read{
		After: req.AfterPosition, Cursor: req.Cursor, Limit: req.Limit, MaxBytes: req.MaxBytes,
	})
	if err != nil {
		return nil, err
	}
	return &api.EventsReadResponse{
		Events: p.Events, Cursor: p.Cursor, Tail: p.Tail, FirstAvailable: p.First, Examined: p.Examined,
	}, nil
}

// keys has no class: every reader is shown every event.
func keys(v *op.View, req *api.EventsReadRequest) ([]string, string, error) {
	_, k, err := source.Resolve(&v.Scope, req.Source)
	if err != nil {
		return nil, "", err
	}
	return []string{source.WakeKey(k)}, "", nil
}
