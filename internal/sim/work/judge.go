package work

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/sim/trial"
)

// Repeat repeats the commands of the book from one on under their ids, many at
// once: answered ones must answer the same, others must have one answer, which the
// book then takes over. It returns how many it repeated.
func (b *Book) Repeat(ctx context.Context, d api.Doer, from int) int {
	b.mu.Lock()
	calls := slices.Clone(b.order[min(from, len(b.order)):])
	b.mu.Unlock()
	var wg sync.WaitGroup
	room := make(chan struct{}, 16)
	for _, e := range calls {
		if e.answer != nil && !e.answer.Stored {
			continue
		}
		room <- struct{}{}
		wg.Go(func() {
			b.repeat(ctx, d, e)
			<-room
		})
	}
	wg.Wait()
	return len(calls)
}

func (b *Book) repeat(ctx context.Context, d api.Doer, e *entry) {
	first, err := b.again(ctx, d, e)
	if err != nil {
		b.Write(Line{Wrong: err.Error()})
		return
	}
	if e.answer == nil {
		second, err := b.again(ctx, d, e)
		if err == nil && first.Stored && second.Reply != first.Reply && !leased(e, second) {
			err = fmt.Errorf("%s %s was not answered; repeated it answers %q and then %q", e.call.Operation, e.call.ID, first.Reply, second.Reply)
		}
		if err != nil {
			b.Write(Line{Wrong: err.Error()})
			return
		}
		if !first.Stored { // a refusal that binds nothing: meanwhile another repeat may have allowed it
			first = second
		}
		b.Write(Line{Answered: first})
		return
	}
	if first.Reply != e.answer.Reply && !leased(e, first) {
		b.Write(Line{Wrong: fmt.Sprintf("%s %s was answered %q and answers %q when it is repeated", e.call.Operation, e.call.ID, e.answer.Reply, first.Reply)})
	}
}

// leased says that an answer is one of those that last as long as a lease, and is
// refused because that has ended.
func leased(e *entry, a *Answer) bool {
	return lasting(e.call.Operation) &&
		slices.Contains([]fault.Code{fault.LeaseExpired, fault.StaleLease, fault.TokenInvalidated, fault.NotFound}, fault.Code(a.Code))
}

// lasting says that answers of an operation last as long as a lease.
func lasting(operation string) bool {
	switch operation {
	case api.QueuesReceive.Name, api.QueuesComplete.Name, api.SubscriptionsReceive.Name, api.SubscriptionsComplete.Name:
		return true
	}
	return false
}

func (b *Book) again(ctx context.Context, d api.Doer, e *entry) (*Answer, error) {
	req, err := e.call.request()
	if err != nil {
		return nil, err
	}
	o := operation(e.call.Operation)
	resp := reflect.New(o.Response).Interface()
	err = d.Do(ctx, o, req, resp)
	switch code := fault.CodeOf(err); code {
	case fault.UnknownWriteOutcome, fault.OwnershipLost, fault.Cancelled, fault.RecoveryRequired, fault.Corruption:
		return nil, fmt.Errorf("%s %s cannot be repeated: %w", o.Name, e.call.ID, err)
	}
	a := &Answer{ID: e.call.ID, Code: string(fault.CodeOf(err))}
	a.Reply, a.Stored = trial.Reply(resp, err)
	return a, nil
}

// Judge compares a store with the book. Every command must have been answered.
func (b *Book) Judge(ctx context.Context, d api.Doer) {
	c := client.CallsOf(d)
	b.mu.Lock()
	defer b.mu.Unlock()
	j := judge{b, ctx, c}
	j.documents()
	for _, s := range []struct {
		source api.SourceRef
		ids    map[string]bool
	}{
		{api.SourceRef{Resource: "log", Kind: api.SourceStream, StreamID: "all"}, b.holds.events}, {api.SourceRef{Resource: "news"}, b.holds.published},
	} {
		j.source(s.source, s.ids)
	}
	st, err := c.QueueStatus(ctx, api.LaneRef{Queue: "jobs"})
	if err != nil {
		b.err("queue status: %v", err)
	} else if done := int64(len(b.holds.finished)); st.Totals.Enqueued != int64(len(b.holds.enqueued)) || st.StoredMessages != st.Totals.Enqueued-done {
		b.err("the queue has taken %d messages and holds %d; %d were enqueued and %d finished", st.Totals.Enqueued, st.StoredMessages, len(b.holds.enqueued), done)
	}
	j.messages()
	j.groups()
	j.catalog()
	j.dispatch()
}

// dispatch must be as the last change left it, and changed no oftener than is known.
// It is only looked at: what a judge changes no book knows.
func (j judge) dispatch() {
	st, err := j.store.RestoreStatus(j.ctx)
	if err != nil || st.Dispatch != j.holds.dispatch || st.Dispatch.Revision != j.holds.dispatched {
		j.err("dispatch is %+v, want %+v after %d changes (%v)", st, j.holds.dispatch, j.holds.dispatched, err)
	}
}

// judge compares one store with a book that is held.
type judge struct {
	*Book
	ctx   context.Context
	store client.Calls
}

func (j judge) documents() {
	for id, n := range j.holds.traces {
		doc, err := j.store.Get(j.ctx, api.PartitionRef{}, "traces", id)
		var got struct{ N int64 }
		if err == nil {
			err = json.Unmarshal(doc.Document, &got)
		}
		if err != nil || got.N != n {
			j.err("%d effects are counted in %s, want %d (%v)", got.N, id, n, err)
		}
	}
	for id, want := range j.holds.docs {
		doc, err := j.store.Get(j.ctx, api.PartitionRef{}, "docs", id)
		got := ""
		switch {
		case err == nil:
			got = string(doc.Document)
		case fault.CodeOf(err) != fault.NotFound:
			j.err("document %s: %v", id, err)
		}
		if got != want {
			j.err("document %s is %q, want %q", id, got, want)
		}
	}
}

// source reads a whole source.
func (j judge) source(s api.SourceRef, want map[string]bool) {
	seen := map[string]bool{}
	for after := uint64(0); ; {
		page, err := j.store.ReadEvents(j.ctx, &api.EventsReadRequest{Source: s, AfterPosition: after, Limit: 1000, MaxBytes: 8 << 20})
		if err != nil {
			j.err("reading %s: %v", s.Resource, err)
			return
		}
		for _, e := range page.Events {
			if seen[e.EventID] || !want[e.EventID] || e.Position != after+1 {
				j.err("%s has event %s at %d: stored twice %v, wanted %v", s.Resource, e.EventID, e.Position, seen[e.EventID], want[e.EventID])
			}
			seen[e.EventID], after = true, e.Position
		}
		if after == page.Tail {
			break
		}
	}
	if len(seen) != len(want) {
		j.err("%s has %d events, want %d", s.Resource, len(seen), len(want))
	}
}

func (j judge) messages() {
	lanes := map[string]api.LaneRef{}
	for _, e := range j.order {
		if q, ok := mustRequest(e).(*api.CommandsCommitRequest); ok && q.Partition.Key != "main" {
			for _, m := range q.Mutations {
				if m.Enqueue != nil {
					lanes[m.Enqueue.Message.MessageID] = api.LaneRef{Partition: q.Partition, Queue: m.Enqueue.Queue}
				}
			}
		}
	}
	for id, want := range j.holds.messages {
		m, err := j.store.InspectMessage(j.ctx, lanes[id], id)
		switch {
		case err != nil:
			j.err("message %s: %v", id, err)
		case m.State == want:
		case want == api.StateReady && m.State == api.StateLeased: // claimed since, or waiting to be again
		default:
			j.err("message %s is %s, want %s", id, m.State, want)
		}
	}
}

func mustRequest(e *entry) any {
	req, _ := e.call.request()
	return req
}

func (j judge) groups() {
	callers := 0
	for _, e := range j.order {
		callers = max(callers, e.call.Caller+1)
	}
	for n := range callers {
		req := &api.SubscriptionsStatusRequest{Group: ownGroup(n)}
		api.ApplyDefaults(req)
		g := req.Group
		want, known := j.holds.groups[g.String()]
		if !known {
			continue
		}
		st, err := j.store.GroupStatus(j.ctx, g, 1)
		switch {
		case want == nil && fault.CodeOf(err) == fault.NotFound:
		case err != nil || want == nil:
			j.err("group %s: %v, want %v", g, err, want)
		case st.State.Generation != want.Generation || st.State.Paused != want.Paused || st.State.Checkpoint < want.Checkpoint || st.State.Tail != j.holds.tails[n]:
			j.err("group %s is %+v, want %+v and the tail %d", g, st.State, *want, j.holds.tails[n])
		}
	}
	st, err := j.store.GroupStatus(j.ctx, followers(), 1)
	if err != nil {
		j.err("group status: %v", err)
		return
	}
	done := int64(len(j.holds.followed))
	if unfinished := int64(st.Lag) - int64(st.CompletedAhead); int64(len(j.holds.published))-done != unfinished {
		j.err("the group has %d events to do; %d were published and %d finished", unfinished, len(j.holds.published), done)
	}
	for p := uint64(1); p <= st.State.Checkpoint; p++ {
		if _, ok := j.holds.followed[p]; !ok {
			j.err("position %d is below the checkpoint %d, and nobody finished it", p, st.State.Checkpoint)
		}
	}
}

func (j judge) catalog() {
	for name, want := range j.holds.resources {
		got, err := j.store.GetResource(j.ctx, &api.ResourcesGetRequest{Name: name})
		switch {
		case want == nil && fault.CodeOf(err) == fault.NotFound:
		case err != nil || want == nil || !reflect.DeepEqual(got, want):
			j.err("resource %s is %+v (%v), want %+v", name, got, err, want)
		}
	}
	for id, want := range j.holds.principals {
		if got, err := j.store.GetPrincipal(j.ctx, "default", id); err != nil || !reflect.DeepEqual(*got, want) {
			j.err("principal %s is %+v (%v), want %+v", id, got, err, want)
		}
	}
	keys, err := j.store.ListAPIKeys(j.ctx, &api.APIKeysListRequest{Limit: 1000})
	if err != nil {
		j.err("keys: %v", err)
		return
	}
	seen := map[string]bool{}
	for _, k := range keys.Keys {
		seen[k.KeyID] = true
		if revoked, ok := j.holds.keys[k.KeyID]; !ok || revoked != k.Revoked {
			j.err("key %s is there with revoked %v; it was made %v and revoked %v", k.KeyID, k.Revoked, ok, revoked)
		}
	}
	if len(seen) != len(j.holds.keys) {
		j.err("%d keys are there, want %d", len(seen), len(j.holds.keys))
	}
}
