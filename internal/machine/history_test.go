package machine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/wire"
)

// step is one command of a recorded history, when it was evaluated, and what was
// answered.
type step struct {
	at  int64
	cmd Command
	out string
}

// history makes commands of every kind one by one, applies each in an entry of
// its own, and records them.
type history struct {
	*bed
	t      *rapid.T
	steps  []step
	tokens []string // of deliveries, live or not
}

var nobody = Identity{Tenant: "default", Principal: "nobody", Partition: place, Hash: worker.Hash}

// token draws one of a delivery, mostly the last.
func (h *history) token() string {
	return rapid.OneOf(rapid.Just(h.tokens[len(h.tokens)-1]), rapid.SampledFrom(h.tokens)).Draw(h.t, "token")
}

func (h *history) run(cmd Command) Outcome {
	h.t.Helper()
	out := h.do(cmd)
	h.steps = append(h.steps, step{h.now, cmd, shown(h.t, out)})
	return out
}

// mutation draws one of any kind; many of them meet what others left, and many
// are refused.
func (h *history) mutation() api.Mutation {
	t := h.t
	n := rapid.IntRange(0, 3).Draw(t, "n")
	id := fmt.Sprint("id", n)
	revision := rapid.Uint64Range(0, 3).Draw(t, "revision")
	doc := fmt.Sprintf(`{"n":%d,"u":%d}`, rapid.IntRange(0, 2).Draw(t, "value"), rapid.IntRange(0, 5).Draw(t, "unique"))
	event := api.Event{Type: "Happened", Payload: api.JSON(doc)}
	if rapid.Bool().Draw(t, "named") {
		event.EventID = id
	}
	message := api.Message{MessageID: id, Payload: api.JSON(doc), NotBefore: api.Time(h.now + 1000*int64(n)), MaxAttempts: int64(n)}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return put(id, doc)
	case 1:
		return putAt(id, doc, revision)
	case 2:
		return api.Mutation{PatchDocument: &api.PatchDocument{Collection: "docs", ID: id, Patches: []api.Patch{{Op: api.PatchIncrement, Path: "/n", Value: api.JSON("1")}}}}
	case 3:
		return api.Mutation{DeleteDocument: &api.DeleteDocument{Collection: "docs", ID: id}}
	case 4:
		return api.Mutation{AppendEvents: &api.AppendEvents{StreamSet: "accounts", StreamID: id, Expected: api.ExpectExact(revision), Events: []api.Event{event}}}
	case 5:
		return api.Mutation{Publish: &api.Publish{Topic: "orders", Events: []api.Event{event}}}
	case 6:
		return api.Mutation{PurgeTopic: &api.PurgeTopic{Topic: "orders", ThroughPosition: revision + 1}}
	case 7:
		message.MessageID = "" // derived
		return api.Mutation{Enqueue: &api.Enqueue{Queue: "work", Message: message}}
	case 8:
		return api.Mutation{CancelMessage: &api.CancelMessage{Queue: "work", MessageID: id, ExpectedStateVersion: revision + 1, ExpectedDeliveryGeneration: 1}}
	default:
		return api.Mutation{Enqueue: &api.Enqueue{Queue: "work", Message: message, IfExists: rapid.SampledFrom([]string{"fail", "return"}).Draw(t, "ifExists")}}
	}
}

func (h *history) receive(who Identity) {
	req := &api.QueuesReceiveRequest{Lane: api.LaneRef{Partition: place, Queue: "work"}, MaxMessages: int64(rapid.IntRange(1, 3).Draw(h.t, "messages")), LeaseSeconds: 2}
	out := h.run(h.command(who, api.QueuesReceive.Operation, req))
	if out.Err != nil {
		return
	}
	handler, _ := h.registry.Numbered(api.QueuesReceive.Number)
	resp := out.Response.(*api.QueuesReceiveResponse)
	h.must(handler.Finish(&op.Door{Tokens: sealer, Now: h.now}, req, resp))
	for _, d := range resp.Deliveries {
		h.tokens = append(h.tokens, d.Token)
	}
}

func (h *history) complete(who Identity) {
	if len(h.tokens) == 0 {
		return
	}
	item := api.CompleteItem{
		Token:  h.token(),
		Action: rapid.SampledFrom([]api.CompleteAction{api.ActionAck, api.ActionNack, api.ActionRenew, api.ActionRelease}).Draw(h.t, "action"),
	}
	h.run(h.command(who, api.QueuesComplete.Operation, &api.QueuesCompleteRequest{Lane: api.LaneRef{Partition: place, Queue: "work"}, Items: []api.CompleteItem{item}}))
}

func (h *history) process(who Identity) {
	if len(h.tokens) == 0 {
		return
	}
	h.run(h.command(who, api.QueuesProcess.Operation, &api.QueuesProcessRequest{
		Lane: api.LaneRef{Partition: place, Queue: "work"}, Token: h.token(),
		HandlerScope: "handler", Effects: []api.Mutation{h.mutation()},
	}))
}

// arrive processes one of few inputs from elsewhere, many of them again, with
// the same effects or others.
func (h *history) arrive(who Identity) {
	req := &api.CommandsInboxRequest{Partition: place, Source: "feed", InputID: fmt.Sprint("input", rapid.IntRange(0, 1).Draw(h.t, "input")), HandlerScope: "handler"}
	if rapid.Bool().Draw(h.t, "effect") {
		req.Effects = []api.Mutation{h.mutation()}
	}
	h.run(h.command(who, api.CommandsInbox.Operation, req))
}

// draw makes a history of the given length.
func draw(t *rapid.T, length int) *history {
	h := &history{bed: newBed(t), t: t}
	for range length {
		who := rapid.SampledFrom([]Identity{worker, worker, worker, worker, root, nobody}).Draw(t, "who")
		switch rapid.IntRange(0, 12).Draw(t, "what") {
		case 0:
			h.now += int64(rapid.SampledFrom([]int{1, 1500, 45_000}).Draw(t, "later"))
		case 1:
			h.run(Tick())
		case 2, 3:
			h.receive(who)
		case 4, 5:
			h.complete(who)
		case 6:
			h.process(who)
		case 7:
			h.arrive(who)
		case 8: // the same command once more
			if len(h.steps) > 0 {
				h.run(rapid.SampledFrom(h.steps).Draw(t, "again").cmd)
			}
		default:
			ms := []api.Mutation{h.mutation()}
			if rapid.IntRange(0, 2).Draw(t, "batch") == 0 {
				ms = append(ms, h.mutation(), h.mutation())
			}
			h.run(h.commit(who, ms...))
		}
	}
	return h
}

// replay applies the history to another shard, joined into entries as join says
// of every step that could be in the entry of the one before it. between is
// called after every entry.
func (h *history) replay(t *rapid.T, join func() bool, between func(*bed), through func(*Entry) *Entry) {
	t.Helper()
	b := newBed(t)
	for i := 0; i < len(h.steps); {
		first, e := i, &Entry{At: h.steps[i].at, Seed: uint64(h.steps[i].at), Epoch: 1}
		for ; i < len(h.steps) && (i == first || h.steps[i].at == e.At && join()); i++ {
			e.Commands = append(e.Commands, h.steps[i].cmd)
		}
		b.now = e.At
		for k, out := range b.apply(through(e)) {
			if got := shown(t, out); got != h.steps[first+k].out {
				t.Fatalf("step %d was answered\n%q, before\n%q", first+k, got, h.steps[first+k].out)
			}
		}
		between(b)
	}
	if b.m.Head() != h.m.Head() {
		t.Fatalf("the shard stands at %+v, before at %+v", b.m.Head(), h.m.Head())
	}
	if d := difference(b.rows(), h.rows()); d != "" {
		t.Fatalf("the states differ: %s", d)
	}
	b.check()
	b.close()
}

func as(e *Entry) *Entry { return e }

// Whatever is joined into one entry, whenever the shard restarts, and whether a
// command was decoded from the log or comes from the call that made it: outcomes,
// state and digest are the same.
func TestOutcomesStateAndDigestDependOnTheCommandsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := draw(t, rapid.IntRange(1, 60).Draw(t, "length"))
		h.check()
		coin := rapid.SliceOfN(rapid.Bool(), 64, 64).Draw(t, "joined")
		n := 0
		flip := func() bool { n++; return coin[n%len(coin)] }
		h.replay(t, flip, func(*bed) {}, as)
		h.replay(t, func() bool { return true }, func(b *bed) { b.restart() }, as)
		h.replay(t, flip, func(b *bed) {
			if flip() {
				b.restart()
			}
		}, func(e *Entry) *Entry {
			encoded, err := e.Encode()
			h.must(err)
			decoded, err := DecodeEntry(encoded)
			h.must(err)
			if again, err := decoded.Encode(); err != nil || string(again) != string(encoded) {
				t.Fatalf("the entry was written again as other bytes (%v)", err)
			}
			return decoded
		})
		h.close()
	})
}

// The test above would prove little if its histories did little.
func TestTheDrawnHistoriesReachEveryKindOfOutcome(t *testing.T) {
	seen := map[string]int{}
	for seed := range 30 {
		h := rapid.Custom(func(t *rapid.T) *history { return draw(t, 60) }).Example(seed)
		for _, s := range h.steps {
			handler, ok := h.registry.Numbered(s.cmd.Op)
			name := "tick"
			if ok {
				name = handler.Op.Name
			}
			if len(s.out) > 7 && s.out[:7] == "refused" {
				name += " refused"
			}
			seen[name]++
		}
		h.close()
	}
	for _, want := range []string{
		"tick", "commands.commit", "commands.commit refused", "queues.receive", "queues.receive refused",
		"queues.complete", "queues.process", "queues.process refused",
		"commands.inbox", "commands.inbox refused",
	} {
		if seen[want] == 0 {
			t.Errorf("no %s in any history: %v", want, seen)
		}
	}
}

func TestADamagedLogEntryIsRefused(t *testing.T) {
	b := newBed(t)
	encoded, err := b.entry(b.commit(worker, put("a", "{}"))).Encode()
	b.must(err)
	for _, bad := range [][]byte{nil, encoded[:len(encoded)-1], append(slices.Clone(encoded), 0)} {
		if _, err := DecodeEntry(bad); err == nil {
			t.Errorf("%x was taken for an entry", bad)
		}
	}
	if _, err := wire.EncodeLog(&Entry{}); err != nil {
		t.Error(err)
	}
}
