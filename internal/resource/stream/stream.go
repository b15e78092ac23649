package stream

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/source"
)

// Resource is what this package brings to the registry.
func Resource() op.Resource {
	return op.Resource{
		Name:      "stream",
		Mutations: []op.Mutation{{Kind: "appendEvents", Apply: appendEvents}},
		Handlers: []op.Handler{
			op.Ask(api.StreamsRead, op.Query[api.StreamsReadRequest, api.StreamsReadResponse]{
				Run: read,
				Wait: &op.Wait[api.StreamsReadRequest, api.StreamsReadResponse]{
					Millis: func(r *api.StreamsReadRequest) int64 { return r.WaitMillis },
					Keys:   keys,
					Again:  func(r *api.StreamsReadResponse) bool { return len(r.Events) == 0 },
				},
			}),
		},
	}
}

// appendEvents stores events at the end of a stream that is as expected; the
// position of the last is the stream's revision.
func appendEvents(c *op.Ctx, i int, m *api.Mutation) (api.MutationResult, error) {
	if err := dispatch.MayTake(&c.Scope); err != nil {
		return api.MutationResult{}, err
	}
	e := m.AppendEvents
	r, k, err := source.Stream(&c.Scope, e.StreamSet, e.StreamID, e.Generation)
	if err != nil {
		return api.MutationResult{}, err
	}
	a, err := source.Append(c, r, k, i, e.Expected, e.Events)
	return api.MutationResult{Kind: "appendEvents", FirstPosition: a.First, Position: a.Last, EventIDs: a.IDs}, err
}

// read answers a page of a stream. A stream nobody has appended to is empty, so
// a reader may wait for its first event.
func read(v *op.View, req *api.StreamsReadRequest) (*api.StreamsReadResponse, error) {
	r, k, err := source.Stream(&v.Scope, req.Stream.StreamSet, req.Stream.StreamID, req.Stream.Generation)
	if err != nil {
		return nil, err
	}
	p, err := source.ReadPage(v, r, k, source.Read{
		After: req.AfterPosition, Cursor: req.Cursor, Backward: req.Direction == api.Backward,
		Limit: req.Limit, MaxBytes: req.MaxBytes,
	})
	if err != nil {
		return nil, err
	}
	return &api.StreamsReadResponse{
		Events: p.Events, Cursor: p.Cursor, Tail: p.Tail, FirstAvailable: p.First, Examined: p.Examined,
	}, nil
}

// keys has no class: every reader is shown every event.
func keys(v *op.View, req *api.StreamsReadRequest) ([]string, string, error) {
	_, k, err := source.Stream(&v.Scope, req.Stream.StreamSet, req.Stream.StreamID, req.Stream.Generation)
	if err != nil {
		return nil, "", err
	}
	return []string{source.WakeKey(k)}, "", nil
}
