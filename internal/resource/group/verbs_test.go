package group

import (
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/source"
)

// What tests say to a group.

func (b *bed) news() api.SourceRef {
	return api.SourceRef{Partition: b.place, Resource: "news", Kind: api.SourceTopic, Generation: 1}
}

func (b *bed) stream(id string) api.SourceRef {
	return api.SourceRef{Partition: b.place, Resource: "streams", Kind: api.SourceStream, StreamID: id}
}

// ref names a group of the topic.
func (b *bed) ref(group string) api.GroupRef { return api.GroupRef{Source: b.news(), Group: group} }

func event(kind string) api.Event {
	return api.Event{Type: kind, Payload: api.JSON("1"), SchemaVersion: 1}
}

// keyedEvent is an event of an ordering key.
func keyedEvent(key string) api.Event {
	e := event("a")
	e.CorrelationID = key
	return e
}

func (b *bed) commit(m ...api.Mutation) error {
	b.t.Helper()
	_, err := call(b, api.CommandsCommit, &api.CommandsCommitRequest{CommandID: b.id(), Partition: b.place, Mutations: m})
	return err
}

// publish publishes events to the topic, each with an id of its own.
func (b *bed) publish(list ...api.Event) {
	b.t.Helper()
	for len(list) > 0 {
		n := min(len(list), 256)
		part := append([]api.Event(nil), list[:n]...)
		for i := range part {
			b.events++
			if part[i].EventID == "" {
				part[i].EventID = fmt.Sprintf("e%d", b.events)
			}
		}
		b.must(b.commit(api.Mutation{Publish: &api.Publish{Topic: "news", Events: part}}))
		list = list[n:]
	}
}

// fill publishes n events of type "a".
func (b *bed) fill(n int) {
	b.t.Helper()
	b.kinds(n, "a")
}

// kinds publishes n events whose types take turns.
func (b *bed) kinds(n int, types ...string) {
	b.t.Helper()
	list := make([]api.Event, n)
	for i := range list {
		list[i] = event(types[i%len(types)])
	}
	b.publish(list...)
}

func (b *bed) purge(through uint64) error {
	b.t.Helper()
	return b.commit(api.Mutation{PurgeTopic: &api.PurgeTopic{Topic: "news", ThroughPosition: through}})
}

// defined is a definition with every default, without jitter unless it says so.
func defined(d api.GroupDefinition) api.GroupDefinition {
	if d.Policy.Retry.Jitter == "" {
		d.Policy.Retry.Jitter = api.JitterNone
	}
	api.ApplyDefaults(&d)
	return d
}

func (b *bed) create(group string, d api.GroupDefinition) *api.SubscriptionsConfigureResponse {
	b.t.Helper()
	r, err := b.configure(group, d, 0)
	b.must(err)
	return r
}

func (b *bed) configure(group string, d api.GroupDefinition, generation uint64) (*api.SubscriptionsConfigureResponse, error) {
	b.t.Helper()
	return call(b, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{
		CommandID: b.id(), Group: b.ref(group), Definition: defined(d), ExpectedGeneration: generation,
	})
}

// reconfigure replaces the definition of "g", which is paused for it and resumed.
func (b *bed) reconfigure(d api.GroupDefinition) *api.SubscriptionsConfigureResponse {
	b.t.Helper()
	b.pause()
	r, err := b.configure("g", d, b.generation())
	b.must(err)
	b.resume()
	return r
}

// tryReceive receives for "g" unless the request names a group.
func (b *bed) tryReceive(req api.SubscriptionsReceiveRequest) (*api.SubscriptionsReceiveResponse, error) {
	b.t.Helper()
	if req.RequestID == "" {
		req.RequestID = b.id()
	}
	if req.Group.Group == "" {
		req.Group = b.ref("g")
	}
	return call(b, api.SubscriptionsReceive, &req)
}

func (b *bed) receive(n int64) *api.SubscriptionsReceiveResponse {
	b.t.Helper()
	r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: n})
	b.must(err)
	return r
}

// of receives for a group.
func (b *bed) of(group string, n int64) *api.SubscriptionsReceiveResponse {
	b.t.Helper()
	r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: n, Group: b.ref(group)})
	b.must(err)
	return r
}

// one receives exactly one event.
func (b *bed) one() api.GroupDelivery {
	b.t.Helper()
	r := b.receive(1)
	if len(r.Deliveries) != 1 {
		b.t.Fatalf("received %d events, want one: %+v", len(r.Deliveries), r)
	}
	return r.Deliveries[0]
}

// cheap asks for the certain answer of a receive; nil is that there is none.
func (b *bed) cheap(req api.SubscriptionsReceiveRequest) (resp *api.SubscriptionsReceiveResponse, err error) {
	b.t.Helper()
	req.RequestID = b.id()
	if req.Group.Group == "" {
		req.Group = b.ref("g")
	}
	api.ApplyDefaults(&req)
	err = b.view(func(v *op.View) (err error) { resp, err = cheapReceive(v, &req); return err })
	return resp, err
}

func (b *bed) tryComplete(group string, items ...api.CompleteItem) (*api.SubscriptionsCompleteResponse, error) {
	b.t.Helper()
	return call(b, api.SubscriptionsComplete, &api.SubscriptionsCompleteRequest{CommandID: b.id(), Group: b.ref(group), Items: items})
}

func (b *bed) complete(items ...api.CompleteItem) []api.PositionResult {
	b.t.Helper()
	r, err := b.tryComplete("g", items...)
	b.must(err)
	return r.Results
}

// finish completes deliveries of a group and wants all of it to succeed.
func (b *bed) finish(group string, action api.CompleteAction, ds ...api.GroupDelivery) {
	b.t.Helper()
	for len(ds) > 0 {
		n := min(len(ds), 256)
		items := make([]api.CompleteItem, n)
		for i := range items {
			items[i] = api.CompleteItem{Token: ds[i].Token, Action: action}
		}
		r, err := b.tryComplete(group, items...)
		b.must(err)
		for i := range r.Results {
			if e := r.Results[i].Error; e != nil {
				b.t.Fatalf("%s of position %d: %v", action, ds[i].Event.Position, e)
			}
		}
		ds = ds[n:]
	}
}

func (b *bed) ack(ds ...api.GroupDelivery) { b.t.Helper(); b.finish("g", api.ActionAck, ds...) }

// nack refuses a delivery; a negative delay leaves it to the retry policy.
func (b *bed) nack(d api.GroupDelivery, delay int64) api.PositionResult {
	b.t.Helper()
	item := api.CompleteItem{Token: d.Token, Action: api.ActionNack, Failure: "did not work"}
	if delay >= 0 {
		item.DelayMillis = &delay
	}
	return b.did(item)
}

// did completes one item, which must succeed.
func (b *bed) did(item api.CompleteItem) api.PositionResult {
	b.t.Helper()
	r := b.complete(item)[0]
	if r.Error != nil {
		b.t.Fatalf("%s of position %d: %v", item.Action, r.Position, r.Error)
	}
	return r
}

func (b *bed) status() *api.SubscriptionsStatusResponse { b.t.Helper(); return b.statusOf("g") }

func (b *bed) statusOf(group string) *api.SubscriptionsStatusResponse {
	b.t.Helper()
	r, err := ask(b, api.SubscriptionsStatus, &api.SubscriptionsStatusRequest{Group: b.ref(group), Rows: 1000})
	b.must(err)
	return r
}

func (b *bed) generation() uint64 { b.t.Helper(); return b.status().State.Generation }

func (b *bed) explain(position uint64) *api.SubscriptionsExplainResponse {
	b.t.Helper()
	r, err := ask(b, api.SubscriptionsExplain, &api.SubscriptionsExplainRequest{Group: b.ref("g"), Position: position})
	b.must(err)
	return r
}

func (b *bed) pause() *api.SubscriptionsPauseResponse {
	b.t.Helper()
	r, err := call(b, api.SubscriptionsPause, &api.SubscriptionsPauseRequest{CommandID: b.id(), Group: b.ref("g"), ExpectedGeneration: b.generation()})
	b.must(err)
	return r
}

func (b *bed) resume() *api.SubscriptionsResumeResponse {
	b.t.Helper()
	r, err := call(b, api.SubscriptionsResume, &api.SubscriptionsResumeRequest{CommandID: b.id(), Group: b.ref("g"), ExpectedGeneration: b.generation()})
	b.must(err)
	return r
}

// trySeek moves "g" at its generation.
func (b *bed) trySeek(req api.SubscriptionsSeekRequest) (*api.SubscriptionsSeekResponse, error) {
	b.t.Helper()
	req.CommandID, req.Group = b.id(), b.ref("g")
	if req.ExpectedGeneration == 0 {
		req.ExpectedGeneration = b.generation()
	}
	return call(b, api.SubscriptionsSeek, &req)
}

// seek moves "g" to a position and resumes it.
func (b *bed) seek(position uint64) *api.SubscriptionsSeekResponse {
	b.t.Helper()
	r, err := b.trySeek(api.SubscriptionsSeekRequest{To: api.SeekPosition, Position: position})
	b.must(err)
	b.resume()
	return r
}

func (b *bed) skip(position uint64) error {
	b.t.Helper()
	_, err := call(b, api.SubscriptionsSkip, &api.SubscriptionsSkipRequest{
		CommandID: b.id(), Group: b.ref("g"), ExpectedGeneration: b.generation(), Position: position, Reason: "no handler can take it",
	})
	return err
}

func (b *bed) delete(group string, confirm uint64) error {
	b.t.Helper()
	_, err := call(b, api.SubscriptionsDelete, &api.SubscriptionsDeleteRequest{CommandID: b.id(), Group: b.ref(group), Confirm: &confirm})
	return err
}

func (b *bed) redrive(position, version uint64) (*api.SubscriptionsDeadLettersRedriveResponse, error) {
	b.t.Helper()
	return call(b, api.SubscriptionsDeadLettersRedrive, &api.SubscriptionsDeadLettersRedriveRequest{
		CommandID: b.id(), Group: b.ref("g"), Position: position, ExpectedVersion: version,
	})
}

func (b *bed) discard(position, version uint64) error {
	b.t.Helper()
	_, err := call(b, api.SubscriptionsDeadLettersDiscard, &api.SubscriptionsDeadLettersDiscardRequest{
		CommandID: b.id(), Group: b.ref("g"), Position: position, ExpectedVersion: version,
	})
	return err
}

func (b *bed) deadLetters() []api.DeadLetter {
	b.t.Helper()
	r, err := ask(b, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: b.ref("g"), Limit: 1000})
	b.must(err)
	return r.DeadLetters
}

func (b *bed) process(d api.GroupDelivery, scope string, effects ...api.Mutation) (*api.SubscriptionsProcessResponse, error) {
	b.t.Helper()
	return call(b, api.SubscriptionsProcess, &api.SubscriptionsProcessRequest{
		CommandID: b.id(), Group: b.ref("g"), Token: d.Token, HandlerScope: scope, Effects: effects,
	})
}

// output is a message for the queue "out".
func output(id string) api.Mutation {
	return api.Mutation{Enqueue: &api.Enqueue{Queue: "out", Message: api.Message{MessageID: id, Payload: api.JSON("1")}}}
}

// key is the topic as its rows name it.
func (b *bed) key() (k source.Key) {
	b.t.Helper()
	b.must(b.view(func(v *op.View) (err error) { _, k, err = source.Topic(&v.Scope, "news", 1); return err }))
	return k
}

// positions are those of deliveries, in their order.
func positions(r *api.SubscriptionsReceiveResponse) []uint64 {
	out := []uint64{}
	for i := range r.Deliveries {
		out = append(out, r.Deliveries[i].Event.Position)
	}
	return out
}

// upTo is from, from + 1, … to.
func upTo(from, to uint64) []uint64 {
	out := []uint64{}
	for p := from; p <= to; p++ {
		out = append(out, p)
	}
	return out
}

// window is how the window looks: "4 [5-6] 7*", a star for what is leased.
func (b *bed) window() string {
	b.t.Helper()
	out := ""
	for i, r := range b.status().Window {
		if i > 0 {
			out += " "
		}
		switch {
		case r.State == api.PositionFinished:
			out += fmt.Sprintf("[%d-%d]", r.From, r.To)
		case r.State == api.PositionLeased:
			out += fmt.Sprintf("%d*", r.From)
		default:
			out += fmt.Sprintf("%d", r.From)
		}
	}
	return out
}

// looks fails unless checkpoint, issued position and window are as given.
func (b *bed) looks(checkpoint, issued uint64, window string) {
	b.t.Helper()
	s := b.status().State
	if got := b.window(); s.Checkpoint != checkpoint || s.Issued != issued || got != window {
		b.t.Errorf("checkpoint %d, issued %d, window %q; want %d, %d, %q", s.Checkpoint, s.Issued, got, checkpoint, issued, window)
	}
}

// wants fails unless an error has the code and reason.
func wants(t *testing.T, what string, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}
