package course

import (
	"strconv"

	"github.com/keyload/keyload/api"
)

func enqueue(id, payload string) api.Mutation {
	if payload == "" {
		payload = strconv.Quote(id)
	}
	return api.Mutation{Enqueue: &api.Enqueue{Queue: "jobs", Message: api.Message{MessageID: id, Payload: api.JSON(payload)}}}
}

// messages stores messages of every kind and changes those that wait.
func messages() []Step {
	return []Step{
		commit("enqueue", func(*Memory) []api.Mutation {
			m := []api.Mutation{enqueue("first", ""), enqueue("second", ""), enqueue("third", ""), enqueue("fourth", ""), enqueue("fifth", "")}
			urgent := 0
			m[4].Enqueue.Message.Priority = &urgent
			return m
		}),
		commit("enqueue for later", func(*Memory) []api.Mutation {
			m := []api.Mutation{enqueue("soon", ""), enqueue("moved", ""), enqueue("short", ""), enqueue("never", "")}
			m[0].Enqueue.Message.NotBefore = api.Time(Began + minute)
			m[1].Enqueue.Message.NotBefore = api.Time(Began + 10*day)
			m[2].Enqueue.Message.ExpiresAt = api.Time(Began + 2*minute)
			m[2].Enqueue.Message.NotBefore = api.Time(Began + 2*minute - second)
			m[3].Enqueue.Message.NotBefore = api.Time(Began + day)
			return m
		}),
		commit("enqueue what is there", func(*Memory) []api.Mutation {
			m := enqueue("first", "")
			m.Enqueue.IfExists = api.IfExistsReturn
			return []api.Mutation{m, count("found again")}
		}),
		commit("reschedule and cancel", func(*Memory) []api.Mutation {
			return []api.Mutation{
				{RescheduleMessage: &api.RescheduleMessage{Queue: "jobs", MessageID: "moved", ExpectedStateVersion: 1, ExpectedDeliveryGeneration: 1, NotBefore: api.Time(Began + 3*minute)}},
				{CancelMessage: &api.CancelMessage{Queue: "jobs", MessageID: "never", ExpectedStateVersion: 1, ExpectedDeliveryGeneration: 1}},
			}
		}),
		is("enqueue in old", api.CommandsCommit.Operation, func() api.CommandRequest {
			var m []api.Mutation
			for i := range 5 {
				e := enqueue("old"+strconv.Itoa(i), "")
				e.Enqueue.Queue = "old"
				m = append(m, e)
			}
			return &api.CommandsCommitRequest{Partition: there, Mutations: m}
		}),
	}
}

// take receives n messages; their tokens are remembered by message id.
func take(name string, n int64) Step {
	return keeping(command(name, api.QueuesReceive.Operation, func(*Memory) api.CommandRequest {
		return &api.QueuesReceiveRequest{Lane: jobs, MaxMessages: n, LeaseSeconds: 30}
	}), func(m *Memory, r *api.QueuesReceiveResponse) {
		for _, d := range r.Deliveries {
			m.Texts[d.MessageID] = d.Token
		}
	})
}

// finish completes messages that are held.
func finish(name string, items ...api.CompleteItem) Step {
	return keeping(command(name, api.QueuesComplete.Operation, func(m *Memory) api.CommandRequest {
		req := &api.QueuesCompleteRequest{Lane: jobs}
		for _, i := range items {
			i.Token = m.Texts[i.Token]
			req.Items = append(req.Items, i)
		}
		return req
	}), func(m *Memory, r *api.QueuesCompleteResponse) {
		for _, res := range r.Results {
			if res.Token != "" {
				m.Texts[res.MessageID] = res.Token
			}
			m.Numbers[res.MessageID] = res.StateVersion
		}
	})
}

// leases claims messages, finishes them in every way, and loses some.
func leases() []Step {
	process := command("process fifth", api.QueuesProcess.Operation, func(m *Memory) api.CommandRequest {
		return &api.QueuesProcessRequest{Lane: jobs, Token: m.Texts["fifth"], HandlerScope: "course", Effects: []api.Mutation{
			count("fifth"), put("docs", "fifth", `{"name":"fifth"}`), enqueue("sixth", ""),
			{AppendEvents: &api.AppendEvents{StreamSet: "log", StreamID: "trail", Expected: api.ExpectAny(), Events: []api.Event{{EventID: "fifth", Type: "done", Payload: api.JSON("5")}}}},
		}}
	})
	steps := []Step{
		take("receive five", 5),
		finish("complete in every way",
			api.CompleteItem{Token: "first", Action: api.ActionAck},
			api.CompleteItem{Token: "second", Action: api.ActionNack, Failure: "later"},
			api.CompleteItem{Token: "third", Action: api.ActionRelease},
			api.CompleteItem{Token: "fourth", Action: api.ActionRenew, LeaseSeconds: 60},
		),
		process,
		finish("complete what is finished", api.CompleteItem{Token: "fifth", Action: api.ActionAck}),
		take("receive third and sixth", 2),
	}
	steps = append(steps, later("40 seconds pass: leases end, a retry is due", 40*second)...)
	steps = append(steps, finish("complete too late", api.CompleteItem{Token: "third", Action: api.ActionAck}))
	steps = append(steps, later("another minute passes: a lease that was renewed ends, soon is due", minute)...)
	steps = append(steps, later("another half: short expires", 30*second)...)
	return append(steps, flush())
}

// deadMessages uses up attempts and delivers dead letters again.
func deadMessages() []Step {
	give := func(id string) Step {
		return finish("give "+id+" up", api.CompleteItem{Token: id, Action: api.ActionNack, Terminal: true, Failure: "poison"})
	}
	return []Step{
		take("receive all that waits", 10),
		give("second"),
		give("third"), // there is room for one
		finish("acknowledge the rest", api.CompleteItem{Token: "fourth", Action: api.ActionAck}, api.CompleteItem{Token: "soon", Action: api.ActionAck}),
		is("redrive second", api.QueuesRedrive.Operation, func() api.CommandRequest {
			return &api.QueuesRedriveRequest{Lane: jobs, MessageID: "second"}
		}),
		is("redrive what is no dead letter", api.QueuesRedrive.Operation, func() api.CommandRequest {
			return &api.QueuesRedriveRequest{Lane: jobs, MessageID: "first"}
		}).refusedFor("wrong_state"),
		commit("redrive third", func(m *Memory) []api.Mutation {
			return []api.Mutation{{RedriveMessage: &api.RedriveMessage{
				Queue: "jobs", MessageID: "third", ExpectedStateVersion: m.Numbers["third"] + 1, ExpectedDeliveryGeneration: 1, // it has got the room of second
			}}}
		}),
	}
}
