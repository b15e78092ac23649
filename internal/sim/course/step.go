package course

import (
	"context"
	"maps"

	"github.com/keyload/keyload/api"
)

// Step is one thing that the course does: a command of its caller, or what time,
// the disk and the operator do.
type Step struct {
	Name string
	// Operation of a command; nil for what is none.
	Operation *api.Operation

	request func(*Memory) api.CommandRequest // without its command id
	keep    func(*Memory, any)               // what later steps need of the response
	refused string                           // reason of the refusal that is expected
	act     func(context.Context, *Run) error
	later   int64 // milliseconds by which the clock moves on
}

// Memory is what later steps need of earlier answers: tokens and numbers.
type Memory struct {
	Texts   map[string]string
	Numbers map[string]uint64
}

func (m Memory) clone() Memory { return Memory{maps.Clone(m.Texts), maps.Clone(m.Numbers)} }

func command(name string, o *api.Operation, request func(*Memory) api.CommandRequest) Step {
	return Step{Name: name, Operation: o, request: request}
}

// is a command whose request needs no memory.
func is(name string, o *api.Operation, req func() api.CommandRequest) Step {
	return command(name, o, func(*Memory) api.CommandRequest { return req() })
}

// commit is one atomic batch in the course's first partition.
func commit(name string, mutations func(*Memory) []api.Mutation) Step {
	return command(name, api.CommandsCommit.Operation, func(m *Memory) api.CommandRequest {
		return &api.CommandsCommitRequest{Partition: here, Mutations: mutations(m)}
	})
}

// refusedFor says that the step is refused, and why.
func (s Step) refusedFor(reason string) Step {
	s.refused = reason
	return s
}

// keeping notes something of the response.
func keeping[Resp any](s Step, keep func(*Memory, *Resp)) Step {
	s.keep = func(m *Memory, resp any) { keep(m, resp.(*Resp)) }
	return s
}

// Mutations are the kinds of mutations of a request, in order.
func Mutations(req any) []api.Mutation {
	switch r := req.(type) {
	case *api.CommandsCommitRequest:
		return r.Mutations
	case *api.CommandsInboxRequest:
		return r.Effects
	case *api.QueuesProcessRequest:
		return r.Effects
	case *api.SubscriptionsProcessRequest:
		return r.Effects
	}
	return nil
}

// Whole says that a step is one command of one shard, so that it is there wholly
// or not at all. Others take several entries: a change of the catalog reaches
// every shard, a deletion goes in steps, due work too.
func (s *Step) Whole() bool { return s.Operation != nil && s.Operation.Scope == api.PartitionScope }
