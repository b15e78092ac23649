package work

import (
	"strings"

	"github.com/keyload/keyload/api"
)

// note takes over what a command did.
func (b *Book) note(e *entry, req, resp any) {
	m := &b.holds
	switch r := resp.(type) {
	case *api.CommandsCommitResponse:
		q := req.(*api.CommandsCommitRequest)
		b.mutations(&e.call, q.Partition, q.Mutations, r.Results)
	case *api.CommandsInboxResponse:
		q := req.(*api.CommandsInboxRequest)
		if m.inputs[q.InputID] != r.AlreadyProcessed {
			b.err("input %s was processed %v before, and is said to be %v", q.InputID, m.inputs[q.InputID], r.AlreadyProcessed)
		}
		m.inputs[q.InputID] = true
		b.effects(e, r.AlreadyProcessed, q.Partition, q.Effects, r.Results)
	case *api.QueuesReceiveResponse:
		for _, d := range r.Deliveries {
			if f, done := m.finished[d.MessageID]; done && f.line < e.sent {
				b.err("message %s was %s and is delivered again", d.MessageID, f.how)
			}
		}
	case *api.QueuesProcessResponse:
		q := req.(*api.QueuesProcessRequest)
		b.finishMessage(r.MessageID, "processed", r.AlreadyProcessed)
		b.effects(e, r.AlreadyProcessed, q.Lane.Partition, q.Effects, r.Results)
	case *api.QueuesCompleteResponse:
		q := req.(*api.QueuesCompleteRequest)
		for i, res := range r.Results {
			switch {
			case res.Error != nil:
			case q.Lane.Partition.Key != "main":
				m.messages[res.MessageID] = res.State
			case q.Items[i].Action == api.ActionAck:
				b.finishMessage(res.MessageID, "acknowledged", false)
			}
		}
	case *api.QueuesRedriveResponse:
		m.messages[r.MessageID] = r.State
	default:
		b.noteGroup(e, req, resp)
	}
}

// finishMessage notes that a message of the shared queue is finished. It can be so
// once only.
func (b *Book) finishMessage(id, how string, again bool) {
	if f, done := b.holds.finished[id]; done && !again {
		b.err("message %s was %s and then %s", id, f.how, how)
	} else if !done {
		b.holds.finished[id] = finish{b.lines, how}
	}
}

func (b *Book) finishPosition(p uint64, how string, again bool) {
	if f, done := b.holds.followed[p]; done && !again {
		b.err("position %d was %s and then %s", p, f.how, how)
	} else if !done {
		b.holds.followed[p] = finish{b.lines, how}
	}
}

// effects notes the effects of an input, unless they were known already.
func (b *Book) effects(e *entry, already bool, p api.PartitionRef, ms []api.Mutation, results []api.MutationResult) {
	if !already {
		b.mutations(&e.call, p, ms, results)
	}
}

func (b *Book) mutations(call *Call, p api.PartitionRef, ms []api.Mutation, results []api.MutationResult) {
	m := &b.holds
	shared := p.Key == "main"
	for i := range ms {
		switch x := &ms[i]; {
		case x.PatchDocument != nil && x.PatchDocument.Collection == "traces":
			m.traces[x.PatchDocument.ID]++
		case x.PatchDocument != nil:
			m.docs[x.PatchDocument.ID] = `{"n":` + string(x.PatchDocument.Patches[0].Value) + `}`
		case x.PutDocument != nil && x.PutDocument.Collection == "docs":
			m.docs[x.PutDocument.ID] = string(x.PutDocument.Document)
		case x.DeleteDocument != nil:
			m.docs[x.DeleteDocument.ID] = ""
		case x.AppendEvents != nil:
			once(b, "event", m.events, x.AppendEvents.Events[0].EventID)
		case x.Publish != nil && shared:
			once(b, "publication", m.published, x.Publish.Events[0].EventID)
		case x.Publish != nil:
			m.tails[call.Caller] = max(m.tails[call.Caller], results[i].Position)
		case x.Enqueue != nil && shared:
			once(b, "message", m.enqueued, x.Enqueue.Message.MessageID)
		case x.Enqueue != nil && x.Enqueue.Queue == "jobs":
			state := api.StateReady
			if x.Enqueue.Message.NotBefore != 0 {
				state = api.StateScheduled
			}
			m.messages[x.Enqueue.Message.MessageID] = state
		case x.CancelMessage != nil:
			m.messages[x.CancelMessage.MessageID] = api.StateCancelled
		case x.RedriveMessage != nil:
			m.messages[x.RedriveMessage.MessageID] = api.StateReady
		}
	}
}

func once(b *Book, what string, ids map[string]bool, id string) {
	if ids[id] {
		b.err("%s %s was stored twice", what, id)
	}
	ids[id] = true
}

// noteGroup takes over what a command of a group or of the catalog did.
func (b *Book) noteGroup(e *entry, req, resp any) {
	m := &b.holds
	stands := func(g api.GroupRef, s *api.GroupState) { m.groups[g.String()] = s }
	switch r := resp.(type) {
	case *api.SubscriptionsReceiveResponse:
		for _, d := range r.Deliveries {
			f, done := m.followed[d.Event.Position]
			if q := req.(*api.SubscriptionsReceiveRequest); done && q.Group.Group == "followers" && f.line < e.sent {
				b.err("position %d was %s and is delivered again", d.Event.Position, f.how)
			}
		}
	case *api.SubscriptionsProcessResponse:
		q := req.(*api.SubscriptionsProcessRequest)
		b.finishPosition(r.Position, "processed", r.AlreadyProcessed)
		b.effects(e, r.AlreadyProcessed, q.Group.Source.Partition, q.Effects, r.Results)
	case *api.SubscriptionsCompleteResponse:
		q := req.(*api.SubscriptionsCompleteRequest)
		for i, res := range r.Results {
			if res.Error == nil && q.Items[i].Action == api.ActionAck && q.Group.Group == "followers" {
				b.finishPosition(res.Position, "acknowledged", false)
			}
		}
		if s := m.groups[q.Group.String()]; s != nil {
			s.Checkpoint = max(s.Checkpoint, r.Checkpoint)
		}
	case *api.SubscriptionsConfigureResponse:
		stands(req.(*api.SubscriptionsConfigureRequest).Group, &r.State)
	case *api.SubscriptionsSeekResponse:
		stands(req.(*api.SubscriptionsSeekRequest).Group, &r.State)
	case *api.SubscriptionsPauseResponse:
		stands(req.(*api.SubscriptionsPauseRequest).Group, &r.State)
	case *api.SubscriptionsResumeResponse:
		stands(req.(*api.SubscriptionsResumeRequest).Group, &r.State)
	case *api.SubscriptionsSkipResponse:
		stands(req.(*api.SubscriptionsSkipRequest).Group, &r.State)
	case *api.SubscriptionsDeleteResponse:
		stands(req.(*api.SubscriptionsDeleteRequest).Group, nil)
	default:
		b.noteCatalog(req, resp)
	}
}

func (b *Book) noteCatalog(req, resp any) {
	m := &b.holds
	switch r := resp.(type) {
	case *api.ResourcesConfigureResponse:
		m.resources[r.Resource.Name] = &r.Resource
	case *api.ResourcesDeleteResponse:
		m.resources[req.(*api.ResourcesDeleteRequest).Name] = nil
	case *api.PrincipalsConfigureResponse:
		if strings.HasPrefix(r.Principal.ID, "principal-") {
			m.principals[r.Principal.ID] = r.Principal
		}
	case *api.AdminDispatchResponse:
		if r.Changed {
			m.dispatched++
		}
		if r.Dispatch.Revision > m.dispatch.Revision {
			m.dispatch = r.Dispatch
		}
	case *api.APIKeysCreateResponse:
		m.keys[r.KeyID] = false
	case *api.APIKeysRevokeResponse:
		m.keys[r.KeyID] = true
	}
}
