package queue

import (
	"fmt"

	"github.com/keyload/keyload/api"
)

// The verbs of the tests: one operation of queue "work" each.

func payload(n int) api.JSON {
	return api.JSON(fmt.Sprintf("%q", string(make([]byte, 0))+fmt.Sprintf("%0*d", n, 0)))
}

func msg(id string) api.Message {
	return api.Message{MessageID: id, Payload: api.Of("payload of " + id)}
}

func (b *bed) commit(ms ...api.Mutation) ([]api.MutationResult, error) {
	b.t.Helper()
	r, err := call(b, api.CommandsCommit, &api.CommandsCommitRequest{CommandID: b.id(), Partition: b.place, Mutations: ms})
	if err != nil {
		return nil, err
	}
	return r.Results, nil
}

func enqueueOf(m api.Message) api.Mutation {
	return api.Mutation{Enqueue: &api.Enqueue{Queue: "work", Message: m}}
}

func (b *bed) tryEnqueue(list ...api.Message) error {
	b.t.Helper()
	ms := make([]api.Mutation, len(list))
	for i := range list {
		ms[i] = enqueueOf(list[i])
	}
	_, err := b.commit(ms...)
	return err
}

func (b *bed) enqueue(list ...api.Message) {
	b.t.Helper()
	b.must(b.tryEnqueue(list...))
}

// fill enqueues n messages "m0001"… in batches of 100.
func (b *bed) fill(n int) {
	b.t.Helper()
	for i := 0; i < n; i += 100 {
		var list []api.Message
		for j := i; j < min(n, i+100); j++ {
			list = append(list, msg(fmt.Sprintf("m%07d", j+1)))
		}
		b.enqueue(list...)
	}
}

func (b *bed) tryReceive(req api.QueuesReceiveRequest) (*api.QueuesReceiveResponse, error) {
	b.t.Helper()
	if req.RequestID == "" {
		req.RequestID = b.id()
	}
	if req.Lane.Queue == "" {
		req.Lane = b.lane()
	}
	return call(b, api.QueuesReceive, &req)
}

func (b *bed) receive(n int64) *api.QueuesReceiveResponse {
	b.t.Helper()
	r, err := b.tryReceive(api.QueuesReceiveRequest{MaxMessages: n, MaxBytes: 8 << 20})
	b.must(err)
	return r
}

// one receives exactly one message.
func (b *bed) one() api.Delivery {
	b.t.Helper()
	r := b.receive(1)
	if len(r.Deliveries) != 1 {
		b.t.Fatalf("received %d messages (%s), want 1", len(r.Deliveries), r.Reason)
	}
	return r.Deliveries[0]
}

func ids(r *api.QueuesReceiveResponse) []string {
	out := []string{}
	for _, d := range r.Deliveries {
		out = append(out, d.MessageID)
	}
	return out
}

func (b *bed) complete(items ...api.CompleteItem) []api.CompleteResult {
	b.t.Helper()
	r, err := call(b, api.QueuesComplete, &api.QueuesCompleteRequest{CommandID: b.id(), Lane: b.lane(), Items: items})
	b.must(err)
	return r.Results
}

func (b *bed) ack(list ...api.Delivery) []api.CompleteResult {
	b.t.Helper()
	items := make([]api.CompleteItem, len(list))
	for i, d := range list {
		items[i] = api.CompleteItem{Token: d.Token, Action: api.ActionAck}
	}
	return b.complete(items...)
}

// nack refuses a delivery; a delay below 0 is by the retry policy.
func (b *bed) nack(d api.Delivery, delay int64) api.CompleteResult {
	b.t.Helper()
	item := api.CompleteItem{Token: d.Token, Action: api.ActionNack, Failure: "it did not work"}
	if delay >= 0 {
		item.DelayMillis = &delay
	}
	return b.complete(item)[0]
}

func (b *bed) inspect(id string) api.MessageInfo {
	b.t.Helper()
	r, err := ask(b, api.QueuesInspect, &api.QueuesInspectRequest{Lane: b.lane(), MessageID: id, IncludePayload: true})
	b.must(err)
	return r.Message
}

// state is the message's state, "" when it is not known.
func (b *bed) state(id string) api.MessageState {
	b.t.Helper()
	r, err := ask(b, api.QueuesInspect, &api.QueuesInspectRequest{Lane: b.lane(), MessageID: id})
	if code(err) == "NotFound/unknown_message" {
		return ""
	}
	b.must(err)
	return r.Message.State
}

func (b *bed) status() *api.QueuesStatusResponse {
	b.t.Helper()
	r, err := ask(b, api.QueuesStatus, &api.QueuesStatusRequest{Lane: b.lane()})
	b.must(err)
	return r
}

func (b *bed) explain(id string) *api.QueuesExplainResponse {
	b.t.Helper()
	r, err := ask(b, api.QueuesExplain, &api.QueuesExplainRequest{Lane: b.lane(), MessageID: id})
	b.must(err)
	return r
}

func (b *bed) cancel(id string) error {
	b.t.Helper()
	i := b.inspect(id)
	_, err := b.commit(api.Mutation{CancelMessage: &api.CancelMessage{
		Queue: "work", MessageID: id, ExpectedStateVersion: i.StateVersion, ExpectedDeliveryGeneration: i.DeliveryGeneration,
	}})
	return err
}

func (b *bed) reschedule(id string, at int64) error {
	b.t.Helper()
	i := b.inspect(id)
	_, err := b.commit(api.Mutation{RescheduleMessage: &api.RescheduleMessage{
		Queue: "work", MessageID: id, ExpectedStateVersion: i.StateVersion, ExpectedDeliveryGeneration: i.DeliveryGeneration, NotBefore: api.Time(at),
	}})
	return err
}

func (b *bed) redrive(id string) (*api.QueuesRedriveResponse, error) {
	b.t.Helper()
	return call(b, api.QueuesRedrive, &api.QueuesRedriveRequest{CommandID: b.id(), Lane: b.lane(), MessageID: id})
}
