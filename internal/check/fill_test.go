package check_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
)

// receive claims messages, which must be so many.
func (w *world) receive(p api.PartitionRef, n int) []api.Delivery {
	w.t.Helper()
	got, err := w.Receive(ctx, &api.QueuesReceiveRequest{Lane: client.Lane(p, "jobs"), MaxMessages: int64(n), LeaseSeconds: 900, SessionID: "s"})
	w.must(err)
	if len(got.Deliveries) != n {
		w.t.Fatalf("%d deliveries, want %d", len(got.Deliveries), n)
	}
	return got.Deliveries
}

func (w *world) complete(p api.PartitionRef, items ...api.CompleteItem) {
	w.t.Helper()
	resp, err := w.Complete(ctx, client.Lane(p, "jobs"), items...)
	w.must(err)
	for _, r := range resp.Results {
		if r.Error != nil {
			w.t.Fatal(r.Error)
		}
	}
}

func items(d []api.Delivery, action api.CompleteAction) (out []api.CompleteItem) {
	for i := range d {
		out = append(out, api.CompleteItem{Token: d[i].Token, Action: action})
		if action == api.ActionRenew {
			out[i].LeaseSeconds = 900
		}
	}
	return out
}

// queues leaves a message in every state, and leases given, partly finished and
// renewed.
func (w *world) queues(p api.PartitionRef) {
	w.t.Helper()
	enqueue := func(id string, change func(m *api.Message)) {
		w.t.Helper()
		m := api.Message{MessageID: id, Payload: api.Of(id), Headers: map[string]string{"a": "1", "b": "2"}, OrderingKey: "k"}
		if change != nil {
			change(&m)
		}
		w.now++ // so that messages finish at instants of their own
		w.commit(p, client.Enqueue("jobs", m))
	}
	enqueue("cancelled", nil)
	w.commit(p, api.Mutation{CancelMessage: &api.CancelMessage{Queue: "jobs", MessageID: "cancelled", ExpectedStateVersion: 1, ExpectedDeliveryGeneration: 1}})
	enqueue("expired", func(m *api.Message) { m.ExpiresAt = api.Time(w.now + 10) })
	w.now += 20
	w.settle()
	for _, id := range []string{"dead", "pending"} {
		enqueue(id, nil)
		w.complete(p, api.CompleteItem{Token: w.receive(p, 1)[0].Token, Action: api.ActionNack, Terminal: true, Failure: "broken"})
	}
	for i := range 9 {
		enqueue(fmt.Sprint("m", i), nil)
	}
	d := w.receive(p, 3) // one is acknowledged, two are left
	w.now++
	w.complete(p, items(d[:1], api.ActionAck)...)
	d = w.receive(p, 3) // two are renewed together, one alone
	w.complete(p, items(d[:2], api.ActionRenew)...)
	w.now++
	w.complete(p, items(d[2:], api.ActionRenew)...)
	d = w.receive(p, 2) // finished together
	w.now++
	w.complete(p, items(d, api.ActionAck)...)
	d = w.receive(p, 1) // tried again later
	w.complete(p, items(d, api.ActionNack)...)
	later := func(m *api.Message) { m.ExpiresAt = api.Time(w.now + 900_000) }
	enqueue("ready", nil)
	enqueue("urgent", func(m *api.Message) { one := 1; m.Priority = &one; m.FairnessKey = "f" })
	enqueue("expires", later)
	enqueue("scheduled", func(m *api.Message) { m.NotBefore = api.Time(w.now + 800_000) })
	enqueue("both", func(m *api.Message) { later(m); m.NotBefore = api.Time(w.now + 700_000) })
	enqueue("bytes", func(m *api.Message) { m.Payload, m.PayloadBase64, m.ContentType = nil, []byte{1, 2}, "x/y" })
}

// claim claims events of a group.
func (w *world) claim(g api.GroupRef, n int) []api.GroupDelivery {
	w.t.Helper()
	got, err := w.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: g, MaxEvents: int64(n), LeaseSeconds: 300, SessionID: "s"})
	w.must(err)
	return got.Deliveries
}

func (w *world) finish(g api.GroupRef, items ...api.CompleteItem) {
	w.t.Helper()
	resp, err := w.CompleteEvents(ctx, g, items...)
	w.must(err)
	for _, r := range resp.Results {
		if r.Error != nil {
			w.t.Fatal(r.Error)
		}
	}
}

func (w *world) group(p api.PartitionRef, name string, policy api.GroupPolicy) api.GroupRef {
	w.t.Helper()
	g := client.Group(client.Topic(p, "news"), name)
	_, err := w.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: g, Definition: api.GroupDefinition{Policy: policy}})
	w.must(err)
	return g
}

// groups leaves a group with a position in every state, gap runs, dead letters in
// every state, and skips; and another one without anything.
func (w *world) groups(p api.PartitionRef) {
	w.t.Helper()
	g := w.group(p, "g", api.GroupPolicy{Ordered: api.OrderPerKey, DeadLetter: api.GroupDeadLetters{MaxEvents: 4}})
	w.group(p, "idle", api.GroupPolicy{})
	d := w.claim(g, 24) // 7 to 30, all but 22, which is blocked
	token := func(position uint64) string {
		return d[slices.IndexFunc(d, func(x api.GroupDelivery) bool { return x.Event.Position == position })].Token
	}
	for position := uint64(10); position <= 14; position++ { // the last one is held: there is no more room
		w.finish(g, api.CompleteItem{Token: token(position), Action: api.ActionNack, Terminal: true, Failure: "broken"})
	}
	delay := int64(600_000)
	w.finish(g,
		api.CompleteItem{Token: token(15), Action: api.ActionNack, DelayMillis: &delay},
		api.CompleteItem{Token: token(16), Action: api.ActionRelease},
		api.CompleteItem{Token: token(18), Action: api.ActionAck}, api.CompleteItem{Token: token(19), Action: api.ActionAck},
		api.CompleteItem{Token: token(25), Action: api.ActionAck},
		api.CompleteItem{Token: token(26), Action: api.ActionRenew, LeaseSeconds: 290})
	status, err := w.GroupStatus(ctx, g, 1)
	w.must(err)
	generation := status.State.Generation
	for _, position := range []uint64{27, 28} {
		_, err := w.SkipPosition(ctx, &api.SubscriptionsSkipRequest{Group: g, Position: position, ExpectedGeneration: generation, Reason: "seen"})
		w.must(err)
	}
	for _, position := range []uint64{10, 11, 12} {
		_, err := w.RedriveEvent(ctx, &api.SubscriptionsDeadLettersRedriveRequest{Group: g, Position: position})
		w.must(err)
	}
	again := w.claim(g, 2)
	w.finish(g, api.CompleteItem{Token: again[1].Token, Action: api.ActionNack, DelayMillis: &delay})
}

// inputs leaves inbox records of messages, events and inputs from elsewhere.
func (w *world) inputs(p api.PartitionRef) {
	w.t.Helper()
	effect := func(id string) []api.Mutation {
		return []api.Mutation{client.Put("plain", id, map[string]any{"by": "handler"})}
	}
	for _, id := range []string{"i1", "i2"} {
		w.now++
		_, err := w.ProcessInput(ctx, &api.CommandsInboxRequest{Partition: p, Source: "hook", InputID: id, HandlerScope: "h", Effects: effect(id)})
		w.must(err)
	}
	w.commit(p, client.Enqueue("mails", api.Message{MessageID: "mail", Payload: api.Of(1)}))
	got, err := w.Receive(ctx, &api.QueuesReceiveRequest{Lane: client.Lane(p, "mails")})
	w.must(err)
	_, err = w.Process(ctx, &api.QueuesProcessRequest{Lane: client.Lane(p, "mails"), Token: got.Deliveries[0].Token, HandlerScope: "h", Effects: effect("i3")})
	w.must(err)
	g := w.group(p, "handled", api.GroupPolicy{})
	_, err = w.ProcessEvent(ctx, &api.SubscriptionsProcessRequest{Group: g, Token: w.claim(g, 1)[0].Token, HandlerScope: "h", Effects: effect("i4")})
	w.must(err)
}

// underWay leaves what due steps are about to do: a lowered limit, a lowered age, a
// deleted group of whose rows some are removed, and a deleted resource likewise.
func (w *world) underWay() {
	w.t.Helper()
	both := []api.PartitionRef{at("main"), elsewhere()}
	for _, p := range both {
		for from := 0; from < 260; from += 130 {
			var ms []api.Mutation
			for i := from; i < from+130; i++ {
				ms = append(ms, client.Put("crowd", fmt.Sprintf("c%03d", i), map[string]any{"age": i}))
			}
			w.commit(p, ms...)
		}
	}
	_, err := w.DeleteResource(ctx, &api.ResourcesDeleteRequest{Name: "crowd", Purge: true})
	w.must(err)
	for _, p := range both {
		w.going = append(w.going, w.keyOf(p, "crowd"))
	}
	w.tick() // the first rows of it are removed
	w.make(api.ResourcesConfigureRequest{Name: "more", Kind: api.KindTopic})
	for _, p := range both {
		g := w.group(p, "leaving", api.GroupPolicy{})
		for range 24 {
			w.claim(g, 1)
		}
		status, err := w.GroupStatus(ctx, g, 1)
		w.must(err)
		_, err = w.DeleteGroup(ctx, g, status.State.Checkpoint)
		w.must(err)
		w.going = append(w.going, w.keyOf(p, "news")+string(binary.BigEndian.AppendUint64(nil, status.State.Generation))) // it begins with the group's number
		w.commit(p, client.Publish("more", event(1, ""), event(2, ""), event(3, "")))
		w.commit(p, client.PurgeTopic("more", 2))
	}
	lowered := api.QueuePolicy{MaxAttempts: 3}
	w.make(api.ResourcesConfigureRequest{Name: "mails", Kind: api.KindQueue, Queue: &lowered, ExpectedVersion: 1})
	aged := api.SourcePolicy{MaxAgeSeconds: 90_000, EventIDRetentionSeconds: 5000}
	w.make(api.ResourcesConfigureRequest{Name: "news", Kind: api.KindTopic, Source: &aged, ExpectedVersion: 1})
}

// keyOf is how the keys of a resource's rows in a partition begin, after the table.
func (w *world) keyOf(p api.PartitionRef, resource string) string {
	hash := partitions.Hash(p)
	o := table.Owner{Space: table.Space{Shard: partitions.ShardOf(hash, shards), Partition: hash}, Resource: w.numbers[resource]}
	return string(o.Append(nil))
}

// leaving says that a row is being removed, so that nothing is told of it.
func (w *world) leaving(key string) bool {
	return slices.ContainsFunc(w.going, func(begin string) bool {
		return strings.HasPrefix(key[1:], begin) && key[0] != byte(table.GroupRemoval)
	})
}
