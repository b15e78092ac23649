package inbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
)

// arrive processes an input of source "pay" in scope "ledger".
func (b *bed) arrive(id string, effects ...api.Mutation) (*api.CommandsInboxResponse, error) {
	b.t.Helper()
	return call(b, api.CommandsInbox, arrival(b, id, effects...))
}

func arrival(b *bed, id string, effects ...api.Mutation) *api.CommandsInboxRequest {
	return &api.CommandsInboxRequest{CommandID: b.id(), Partition: place, Source: "pay", InputID: id, HandlerScope: "ledger", Effects: effects}
}

// toOut is an effect whose message id is derived from the command, so that
// applying it again would add another message.
var toOut = output("out", "")

func TestCase099_AnInputFromElsewhereHasItsEffectsOnceHoweverOftenItArrives(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	first, err := b.arrive("evt", toOut)
	b.must(err)
	if first.AlreadyProcessed || len(first.Results) != 1 || first.EffectsToken != first.Receipt.Token {
		t.Errorf("%+v", first)
	}
	before := b.rows()
	for range 3 {
		b.now += 3_600_000
		again, err := b.arrive("evt", toOut)
		b.must(err)
		if !again.AlreadyProcessed || again.Results != nil || again.EffectsToken != first.EffectsToken || again.Receipt.Token == first.Receipt.Token {
			t.Errorf("%+v", again)
		}
	}
	b.same("a repeated input", before)
	if n := b.check()["inboxRecords"]; n != 1 || b.count("out") != 1 {
		t.Errorf("%d records, %d outputs", n, b.count("out"))
	}
}

func TestSourceInputScopeGenerationAndPartitionTellInputsApart(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for i, change := range []func(*api.CommandsInboxRequest){
		func(*api.CommandsInboxRequest) {},
		func(r *api.CommandsInboxRequest) { r.Source = "ship" },
		func(r *api.CommandsInboxRequest) { r.InputID = "evt2" },
		func(r *api.CommandsInboxRequest) { r.HandlerScope = "mail" },
		func(r *api.CommandsInboxRequest) { r.ExecutionGeneration = 2 },
		func(r *api.CommandsInboxRequest) { r.Partition.Key = "other" },
		func(r *api.CommandsInboxRequest) { r.Source, r.InputID = "paye", "vt" }, // the same letters
	} {
		for _, already := range []bool{false, true} {
			r := arrival(b, "evt")
			change(r)
			if got, err := call(b, api.CommandsInbox, r); err != nil || got.AlreadyProcessed != already {
				t.Errorf("input %d: %+v %v", i, got, err)
			}
		}
	}
	if n := b.check()["inboxRecords"]; n != 7 {
		t.Errorf("%d records", n)
	}
}

func TestAnInputFromElsewhereAndAMessageOfItsNameAreTwoInputs(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	_, err := b.arrive("m", toOut)
	b.must(err)
	b.enqueue("in", "m")
	if r, err := b.process(b.receive(), "ledger", toOut); err != nil || r.AlreadyProcessed {
		t.Errorf("%+v %v", r, err)
	}
}

func TestOtherEffectsOfAnInputFromElsewhereAreAConflictAndChangeNothing(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	_, err := b.arrive("evt", output("out", "a"), output("out", "b"))
	b.must(err)
	before := b.rows()
	for i, effects := range [][]api.Mutation{
		nil, {output("out", "a")}, {output("out", "b"), output("out", "a")}, {output("out", "a"), output("out", "b"), output("out", "c")}, {output("in", "a"), output("out", "b")},
	} {
		_, err := b.arrive("evt", effects...)
		if code(err) != "Conflict/processed_differently" || !strings.Contains(err.Error(), `input "evt" of source "pay"`) {
			t.Errorf("effects %d: %v", i, err)
		}
	}
	b.same("a conflict", before)
	if r, err := b.arrive("evt", output("out", "a"), output("out", "b")); err != nil || !r.AlreadyProcessed {
		t.Errorf("the effects that were committed: %+v %v", r, err)
	}
}

func TestCase097_ARefusedEffectLeavesNoRecordOfTheInput(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("out", "taken")
	before := b.rows()
	_, err := b.arrive("evt", output("out", "a"), output("out", "taken"))
	if code(err) != "Conflict/message_exists" || !strings.Contains(fmt.Sprint(facts(err)), "effect:1") {
		t.Errorf("%v %v", err, facts(err))
	}
	b.same("a refused effect", before)
	if r, err := b.arrive("evt", output("out", "a")); err != nil || r.AlreadyProcessed {
		t.Errorf("then: %+v %v", r, err)
	}
}

func TestAnInputMayHaveNoneToTheMostEffectsAndNotOneMore(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for n, want := range map[int]string{0: "", 1: "", 255: "", 256: "", 257: "Validation/"} {
		effects := make([]api.Mutation, n)
		for i := range effects {
			effects[i] = output("in", fmt.Sprintf("%d-%d", n, i))
		}
		r, err := b.arrive(fmt.Sprint(n), effects...)
		if got := code(err); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%d effects: %v", n, err)
		} else if err == nil && len(r.Results) != n {
			t.Errorf("%d effects have %d results", n, len(r.Results))
		}
	}
}

func TestTheLongestNamesOfAnInputAreStoredAndFound(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for _, n := range []int{255, 256} {
		for _, already := range []bool{false, true} {
			r := arrival(b, strings.Repeat("i", n))
			r.Source, r.HandlerScope, r.ExecutionGeneration = strings.Repeat("s", n), strings.Repeat("h", n), 1<<63-1
			if got, err := call(b, api.CommandsInbox, r); err != nil || got.AlreadyProcessed != already {
				t.Errorf("%d bytes: %+v %v", n, got, err)
			}
		}
	}
	for _, change := range []func(*api.CommandsInboxRequest){
		func(r *api.CommandsInboxRequest) { r.Source = strings.Repeat("s", 257) },
		func(r *api.CommandsInboxRequest) { r.InputID = strings.Repeat("i", 257) },
		func(r *api.CommandsInboxRequest) { r.HandlerScope = strings.Repeat("h", 257) },
		func(r *api.CommandsInboxRequest) { r.Source = "" },
		func(r *api.CommandsInboxRequest) { r.InputID = "a" + separator + "b" },
		func(r *api.CommandsInboxRequest) { r.Source = "a" + separator + "b" },
		func(r *api.CommandsInboxRequest) { r.ExecutionGeneration = 1 << 63 },
	} {
		r := arrival(b, "evt")
		change(r)
		if _, err := call(b, api.CommandsInbox, r); !strings.HasPrefix(code(err), "Validation/") {
			t.Errorf("source %.8q input %.8q scope %.8q: %v", r.Source, r.InputID, r.HandlerScope, err)
		}
	}
}

func TestAnInputIsKnownUntilItsHorizonAndNewFromThen(t *testing.T) {
	for _, c := range []struct {
		after   int64
		already bool
	}{{horizonMillis - 1, true}, {horizonMillis, false}, {horizonMillis + 1, false}} {
		b := newBed(t, api.QueuePolicy{})
		_, err := b.arrive("evt", toOut)
		b.must(err)
		b.later(c.after)
		if n := b.check()["inboxRecords"]; (n == 1) != c.already {
			t.Errorf("%d ms: %d records", c.after, n)
		}
		r, err := b.arrive("evt", toOut)
		if err != nil || r.AlreadyProcessed != c.already {
			t.Errorf("%d ms: %+v %v", c.after, r, err)
		}
	}
}

func TestTheInputsOfEachOwnerAreForgottenAtTheirOwnInstant(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	_, err := b.arrive("a", toOut)
	b.must(err)
	b.enqueue("in", "m")
	b.now += 1000
	_, err = b.process(b.receive(), "ledger")
	b.must(err)
	_, err = b.arrive("b", toOut)
	b.must(err)
	b.later(horizonMillis - 1000)
	if n := b.check()["inboxRecords"]; n != 2 {
		t.Errorf("%d records after the first horizon", n)
	}
	b.later(1000)
	if n := b.check()["inboxRecords"]; n != 0 {
		t.Errorf("%d records after the last", n)
	}
}

func TestAnInputFromElsewhereAddsTwoRowsToItsEffects(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	cost := func(id string) kv.Work {
		before := b.m.Work()
		_, err := b.arrive(id)
		b.must(err)
		w := b.m.Work()
		return kv.Work{Puts: w.Puts - before.Puts, Deletes: w.Deletes - before.Deletes, Scans: w.Scans - before.Scans}
	}
	cost("first") // arms pruning
	// inbox record and order; receipt and shard head
	if w := cost("a"); w != (kv.Work{Puts: 4}) {
		t.Errorf("a new input costs %+v", w)
	}
	if w := cost("a"); w != (kv.Work{Puts: 2}) {
		t.Errorf("a repeated input costs %+v", w)
	}
}
