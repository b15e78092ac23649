package engine

import (
	"context"
	"runtime"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
)

// preparers is how many large commands are checked and encoded at once: half of the
// cores, so that an acknowledgement that arrives finds one that is free.
func preparers() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// queueUp lets a large command wait for its turn to be checked and encoded. Until
// then it takes no memory of the store's own; admission counts it after that.
// Where none would be admitted it is refused before any work is spent on it.
func (c *call) queueUp(ctx context.Context) (leave func(), err error) {
	nothing := func() {}
	if c.h.Run != nil || c.h.Cheap != nil { // a query; a command whose answer may need no place
		return nothing, nil
	}
	if err := c.admission.refuses(c.who.tenant, c.h.Urgent); err != nil {
		return nil, err
	}
	if weight(c.req) <= limits.SmallBodyBytes {
		return nothing, nil
	}
	select {
	case c.preparing <- struct{}{}:
	case <-ctx.Done():
		return nil, fault.New(fault.Cancelled, "cancelled", "the caller went away before the command was submitted; nothing happened")
	}
	if err := c.admission.refuses(c.who.tenant, c.h.Urgent); err != nil {
		<-c.preparing
		return nil, err
	}
	return func() { <-c.preparing }, nil
}

// weight is about how many bytes a command has, found without encoding it.
func weight(req any) int {
	switch r := req.(type) {
	case *api.CommandsCommitRequest:
		return mutationsWeight(r.Mutations)
	case *api.CommandsInboxRequest:
		return mutationsWeight(r.Effects)
	case *api.QueuesProcessRequest:
		return mutationsWeight(r.Effects)
	case *api.SubscriptionsProcessRequest:
		return mutationsWeight(r.Effects)
	}
	return 0
}

func mutationsWeight(ms []api.Mutation) (n int) {
	for i := range ms {
		switch m := &ms[i]; {
		case m.PutDocument != nil:
			n += len(m.PutDocument.Document)
		case m.PatchDocument != nil:
			for _, p := range m.PatchDocument.Patches {
				n += len(p.Value)
			}
		case m.AppendEvents != nil:
			n += eventsWeight(m.AppendEvents.Events)
		case m.Publish != nil:
			n += eventsWeight(m.Publish.Events)
		case m.Enqueue != nil:
			n += len(m.Enqueue.Message.Payload) + len(m.Enqueue.Message.PayloadBase64)
		}
	}
	return n
}

func eventsWeight(es []api.Event) (n int) {
	for i := range es {
		n += len(es[i].Payload) + len(es[i].PayloadBase64)
	}
	return n
}
