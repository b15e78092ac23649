package course

import (
	"fmt"
	"strconv"

	"github.com/keyload/keyload/api"
)

// group names a group of the topic.
func group(name string) api.GroupRef { return api.GroupRef{Source: news, Group: name} }

// events publishes and appends.
func events() []Step {
	publish := func(topic string, from, n int) api.Mutation {
		p := &api.Publish{Topic: topic}
		for i := range n {
			p.Events = append(p.Events, api.Event{
				EventID: fmt.Sprintf("%s-%d", topic, from+i), Type: []string{"even", "odd"}[(from+i)%2], Payload: api.JSON(strconv.Itoa(from + i)),
				Headers: map[string]string{"key": strconv.Itoa((from + i) % 3)},
			})
		}
		return api.Mutation{Publish: p}
	}
	return []Step{
		commit("publish", func(*Memory) []api.Mutation { return []api.Mutation{publish("news", 1, 12), publish("brief", 1, 3)} }),
		commit("publish what was published", func(*Memory) []api.Mutation {
			return []api.Mutation{count("never"), publish("news", 12, 1)}
		}).refusedFor("same_content"),
		commit("append", func(*Memory) []api.Mutation {
			return []api.Mutation{{AppendEvents: &api.AppendEvents{StreamSet: "log", StreamID: "trail", Expected: api.ExpectExact(1), Events: []api.Event{
				{EventID: "two", Type: "noted", Payload: api.JSON("2")}, {Type: "noted", PayloadBase64: []byte{0, 1, 2}, ContentType: "application/octet-stream"},
			}}}}
		}),
		commit("publish in past", func(*Memory) []api.Mutation { return []api.Mutation{publish("past", 1, 4)} }),
	}
}

// define creates a group, or gives one that is paused another definition.
func define(name string, g api.GroupRef, def api.GroupDefinition, again bool) Step {
	return keeping(command(name, api.SubscriptionsConfigure.Operation, func(m *Memory) api.CommandRequest {
		req := &api.SubscriptionsConfigureRequest{Group: g, Definition: def}
		if again {
			req.ExpectedGeneration = generation(m, g)
		}
		return req
	}), func(m *Memory, r *api.SubscriptionsConfigureResponse) { stands(m, g, r.State) })
}

// stands remembers where a group stands. Generations begin at a number that is
// never given twice, so they have to be asked for.
func stands(m *Memory, g api.GroupRef, s api.GroupState) {
	m.Numbers[g.Group+" generation"], m.Numbers[g.Group+" checkpoint"] = s.Generation, s.Checkpoint
}

func generation(m *Memory, g api.GroupRef) uint64 { return m.Numbers[g.Group+" generation"] }

// claim receives n events of a group; their tokens are remembered by position.
func claim(name string, g api.GroupRef, n int64) Step {
	return keeping(command(name, api.SubscriptionsReceive.Operation, func(*Memory) api.CommandRequest {
		return &api.SubscriptionsReceiveRequest{Group: g, MaxEvents: n, LeaseSeconds: 30}
	}), func(m *Memory, r *api.SubscriptionsReceiveResponse) {
		for _, d := range r.Deliveries {
			m.Texts[held(g, d.Event.Position)] = d.Token
		}
	})
}

func held(g api.GroupRef, position uint64) string { return fmt.Sprint(g.Group, position) }

// settle completes deliveries of a group.
func settle(name string, g api.GroupRef, items map[uint64]api.CompleteItem) Step {
	return keeping(command(name, api.SubscriptionsComplete.Operation, func(m *Memory) api.CommandRequest {
		req := &api.SubscriptionsCompleteRequest{Group: g}
		for p := uint64(1); p < 100; p++ {
			if i, ok := items[p]; ok {
				i.Token = m.Texts[held(g, p)]
				req.Items = append(req.Items, i)
			}
		}
		return req
	}), func(m *Memory, r *api.SubscriptionsCompleteResponse) {
		for _, res := range r.Results {
			if res.Token != "" {
				m.Texts[held(g, res.Position)] = res.Token
			}
		}
	})
}

// deliveries follows the topic: acknowledgements out of order, gaps, retries.
func deliveries() []Step {
	g, s := group("readers"), api.GroupRef{Source: trail, Group: "keeper"}
	retry := api.RetryPolicy{BaseMillis: second, MaxMillis: minute, Factor: 2, Jitter: api.JitterNone}
	steps := []Step{
		define("create readers", g, api.GroupDefinition{Policy: api.GroupPolicy{MaxWindow: 8, MaxAttempts: 2, Retry: retry}}, false),
		define("create odd", group("odd"), api.GroupDefinition{
			Filter: api.GroupFilter{EventTypes: []string{"odd"}},
			Policy: api.GroupPolicy{Ordered: api.OrderPerKey, OrderingHeader: "key", Retry: retry, OnExhausted: api.ExhaustedHold, MaxAttempts: 1},
		}, false),
		define("create keeper", s, api.GroupDefinition{}, false),
		claim("claim six", g, 6),
		claim("claim of odd", group("odd"), 3),
		claim("claim of keeper", s, 2),
		settle("out of order", g, map[uint64]api.CompleteItem{
			2: {Action: api.ActionAck}, 4: {Action: api.ActionNack, Failure: "not yet"}, 5: {Action: api.ActionRenew, LeaseSeconds: 60}, 6: {Action: api.ActionRelease},
		}),
		command("process 3", api.SubscriptionsProcess.Operation, func(m *Memory) api.CommandRequest {
			return &api.SubscriptionsProcessRequest{Group: g, Token: m.Texts[held(g, 3)], HandlerScope: "course", Effects: []api.Mutation{count("event 3"), enqueue("from-event", "")}}
		}),
		settle("odd acknowledges", group("odd"), map[uint64]api.CompleteItem{1: {Action: api.ActionAck}}),
		settle("odd gives up", group("odd"), map[uint64]api.CompleteItem{3: {Action: api.ActionNack, Failure: "poison"}}),
		settle("keeper", s, map[uint64]api.CompleteItem{1: {Action: api.ActionAck}, 2: {Action: api.ActionAck}}),
	}
	steps = append(steps, later("40 seconds pass: 1 is free again", 40*second)...)
	return append(steps, flush())
}

// deadEvents uses up attempts and decides what becomes of the dead letters.
func deadEvents() []Step {
	g, odd := group("readers"), group("odd")
	dead := func(p uint64) api.CompleteItem {
		return api.CompleteItem{Action: api.ActionNack, Terminal: true, Failure: "poison"}
	}
	return []Step{
		claim("claim again", g, 6),
		settle("give two up", g, map[uint64]api.CompleteItem{1: dead(1), 4: dead(4)}),
		is("redrive 1", api.SubscriptionsDeadLettersRedrive.Operation, func() api.CommandRequest {
			return &api.SubscriptionsDeadLettersRedriveRequest{Group: g, Position: 1}
		}),
		is("discard 4", api.SubscriptionsDeadLettersDiscard.Operation, func() api.CommandRequest {
			return &api.SubscriptionsDeadLettersDiscardRequest{Group: g, Position: 4}
		}),
		is("discard 4 again", api.SubscriptionsDeadLettersDiscard.Operation, func() api.CommandRequest {
			return &api.SubscriptionsDeadLettersDiscardRequest{Group: g, Position: 4}
		}).refusedFor("unknown_dead_letter"),
		claim("claim the redriven one", g, 1),
		settle("and finish it", g, map[uint64]api.CompleteItem{1: {Action: api.ActionAck}}),
		command("skip what is held", api.SubscriptionsSkip.Operation, func(m *Memory) api.CommandRequest {
			return &api.SubscriptionsSkipRequest{Group: odd, ExpectedGeneration: generation(m, odd), Position: 3, Reason: "nobody can take it"}
		}),
	}
}

// moves pauses, changes and moves groups, cuts their topic and deletes one.
func moves() []Step {
	g, odd := group("readers"), group("odd")
	pause := func(g api.GroupRef) Step {
		return keeping(command("pause "+g.Group, api.SubscriptionsPause.Operation, func(m *Memory) api.CommandRequest {
			return &api.SubscriptionsPauseRequest{Group: g, ExpectedGeneration: generation(m, g)}
		}), func(m *Memory, r *api.SubscriptionsPauseResponse) { stands(m, g, r.State) })
	}
	resume := func(g api.GroupRef) Step {
		return command("resume "+g.Group, api.SubscriptionsResume.Operation, func(m *Memory) api.CommandRequest {
			return &api.SubscriptionsResumeRequest{Group: g, ExpectedGeneration: generation(m, g)}
		})
	}
	steps := []Step{
		pause(odd),
		claim("claim while paused", odd, 1).refusedFor("group_paused"),
		define("odd wants all", odd, api.GroupDefinition{Policy: api.GroupPolicy{MaxWindow: 4}}, true),
		resume(odd),
		claim("claim by the new filter", odd, 4),
		keeping(command("seek odd", api.SubscriptionsSeek.Operation, func(m *Memory) api.CommandRequest {
			return &api.SubscriptionsSeekRequest{Group: odd, ExpectedGeneration: generation(m, odd), To: api.SeekPosition, Position: 9}
		}), func(m *Memory, r *api.SubscriptionsSeekResponse) { stands(m, odd, r.State) }),
		settle("with tokens of before", odd, map[uint64]api.CompleteItem{5: {Action: api.ActionAck}}),
		resume(odd),
		claim("claim after the seek", odd, 2),
		settle("finish 9", odd, map[uint64]api.CompleteItem{9: {Action: api.ActionAck}}),
		pause(g),
		commit("purge what is needed", func(*Memory) []api.Mutation {
			return []api.Mutation{{PurgeTopic: &api.PurgeTopic{Topic: "news", ThroughPosition: 12}}}
		}).refusedFor("retention_pin"),
		commit("purge", func(*Memory) []api.Mutation {
			return []api.Mutation{{PurgeTopic: &api.PurgeTopic{Topic: "news", ThroughPosition: 3}}, count("purged")}
		}),
		command("delete readers", api.SubscriptionsDelete.Operation, func(m *Memory) api.CommandRequest {
			at := m.Numbers["readers checkpoint"]
			return &api.SubscriptionsDeleteRequest{Group: g, Confirm: &at}
		}),
	}
	return append(append(steps, later("the rows of readers go", second)...), compact())
}
