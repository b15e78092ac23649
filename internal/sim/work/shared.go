package work

import (
	"fmt"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

// feed changes one thing of every kind in one batch.
func (c *caller) feed() {
	id := c.name("m")
	m := api.Message{MessageID: id, Payload: api.Of(id)}
	if c.chance(20) {
		m.NotBefore = api.TimeOf(time.Now().Add(30 * time.Millisecond))
	}
	e := api.Event{EventID: id, Type: "fed", Payload: api.Of(id)}
	send(c, api.CommandsCommit, &api.CommandsCommitRequest{Mutations: []api.Mutation{
		trace("all"), trace(fmt.Sprint("caller-", c.number)),
		client.Append("log", "all", e), client.Publish("news", e), client.Enqueue("jobs", m),
	}})
}

// edit puts, changes or deletes one of the caller's documents.
func (c *caller) edit() {
	id := fmt.Sprintf("doc-%d-%d", c.number, c.rng.IntN(4))
	n := c.rng.IntN(1000)
	var m api.Mutation
	switch c.rng.IntN(4) {
	case 0:
		m = client.Delete("docs", id)
	case 1:
		m = client.Patch("docs", id, api.Patch{Op: api.PatchSet, Path: "/n", Value: api.Of(n)})
	default:
		m = client.Put("docs", id, map[string]int{"n": n})
	}
	send(c, api.CommandsCommit, &api.CommandsCommitRequest{Mutations: []api.Mutation{m}}, fault.NotFound)
}

// consume takes messages of the shared queue and finishes them in some way.
func (c *caller) consume() {
	jobs := api.LaneRef{Queue: "jobs"}
	got := send(c, api.QueuesReceive, &api.QueuesReceiveRequest{Lane: jobs, MaxMessages: 1 + int64(c.rng.IntN(3)), LeaseSeconds: 1, WaitMillis: 5})
	if got == nil {
		return
	}
	for _, d := range got.Deliveries {
		token := d.Token
		way := c.way()
		if way.renew {
			r := send(c, api.QueuesComplete, &api.QueuesCompleteRequest{Lane: jobs, Items: []api.CompleteItem{{Token: token, Action: api.ActionRenew, LeaseSeconds: 2}}})
			if r == nil || r.Results[0].Error != nil {
				continue
			}
			token = r.Results[0].Token
		}
		switch {
		case way.process:
			send(c, api.QueuesProcess, &api.QueuesProcessRequest{
				Lane: jobs, Token: token, HandlerScope: "work", Effects: []api.Mutation{trace("processed"), client.PutAt("docs", "of-"+d.MessageID, 0, map[string]int{"n": 1})},
			}, leaseRefusals...)
		case way.action != "":
			send(c, api.QueuesComplete, &api.QueuesCompleteRequest{Lane: jobs, Items: []api.CompleteItem{{Token: token, Action: way.action}}})
		}
	}
}

// way is what becomes of a delivery; nothing at all is what a worker does that
// died.
type way struct {
	renew, process bool
	action         api.CompleteAction
}

func (c *caller) way() way {
	w := way{renew: c.chance(15)}
	switch n := c.rng.IntN(100); {
	case n < 60:
		w.process = true
	case n < 75:
		w.action = api.ActionAck
	case n < 85:
		w.action = api.ActionNack
	case n < 92:
		w.action = api.ActionRelease
	}
	return w
}

// follow takes events of the shared group and finishes them in some way, the last
// first, so that there are gaps.
func (c *caller) follow() {
	got := send(c, api.SubscriptionsReceive, &api.SubscriptionsReceiveRequest{Group: followers(), MaxEvents: 1 + int64(c.rng.IntN(3)), LeaseSeconds: 1, WaitMillis: 5})
	if got == nil {
		return
	}
	for i := len(got.Deliveries) - 1; i >= 0; i-- {
		d := &got.Deliveries[i]
		token := d.Token
		way := c.way()
		if way.renew {
			r := send(c, api.SubscriptionsComplete, &api.SubscriptionsCompleteRequest{Group: followers(), Items: []api.CompleteItem{{Token: token, Action: api.ActionRenew, LeaseSeconds: 2}}})
			if r == nil || r.Results[0].Error != nil {
				continue
			}
			token = r.Results[0].Token
		}
		switch {
		case way.process:
			send(c, api.SubscriptionsProcess, &api.SubscriptionsProcessRequest{
				Group: followers(), Token: token, HandlerScope: "work", Effects: []api.Mutation{trace("followed"), client.PutAt("docs", fmt.Sprint("at-", d.Event.Position), 0, map[string]int{"n": 1})},
			}, leaseRefusals...)
		case way.action != "":
			send(c, api.SubscriptionsComplete, &api.SubscriptionsCompleteRequest{Group: followers(), Items: []api.CompleteItem{{Token: token, Action: way.action}}})
		}
	}
}

// dispatch stops the deliveries of the whole store, and lets them go on. A life may
// end between the two.
func (c *caller) dispatch() {
	send(c, api.AdminDispatch, &api.AdminDispatchRequest{State: api.DispatchPaused, RefuseIntake: c.chance(30), Reason: "work"})
	c.resume()
}

// resume lets the store deliver.
func (c *caller) resume() {
	send(c, api.AdminDispatch, &api.AdminDispatchRequest{State: api.DispatchRunning})
}

// input commits an input from elsewhere, often more than once.
func (c *caller) input() {
	id := c.name("i")
	for range 1 + c.rng.IntN(2) {
		send(c, api.CommandsInbox, &api.CommandsInboxRequest{
			Source: "elsewhere", InputID: id, HandlerScope: "work", Effects: []api.Mutation{trace("inputs"), client.PutAt("docs", "of-"+id, 0, map[string]int{"n": 1})},
		})
	}
}
