package inbox

import (
	"reflect"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
)

func TestProcessCommitsEffectsAndAcknowledgementTogether(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	d := b.receive()
	r, err := b.process(d, "billing", output("out", "o1"), output("out", "o2"))
	b.must(err)
	if r.AlreadyProcessed || r.State != api.StateAcked || r.MessageID != "m" || len(r.Results) != 2 || r.EffectsToken.Position != r.Receipt.Token.Position {
		t.Errorf("%+v", r)
	}
	if b.count("in") != 0 || b.count("out") != 2 || b.check()["inboxRecords"] != 1 {
		t.Errorf("in %d out %d", b.count("in"), b.count("out"))
	}
}

func TestCase099_AProcessedInputRepeatsNoOutputWhoeverBringsItAgain(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	effects := []api.Mutation{output("out", "")} // an id derived from the command: a repeat would make another
	first := b.receive()
	r1, err := b.process(first, "billing", effects...)
	b.must(err)
	r2, err := b.process(first, "billing", effects...)
	b.must(err)
	if !r2.AlreadyProcessed || r2.EffectsToken != r1.EffectsToken || r2.Results != nil || r2.State != api.StateAcked || b.count("out") != 1 {
		t.Errorf("%+v, %d outputs", r2, b.count("out"))
	}
	if r2.Receipt.Token == r1.Receipt.Token {
		t.Errorf("a new command answered with the old one's receipt")
	}
}

func TestALiveRedeliveryOfAProcessedInputIsAcknowledged(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 1})
	b.enqueue("in", "m")
	d := b.receive()
	// The handler crashed after its effects were committed under another scope,
	// and the lease was lost: the message comes again to the first scope.
	_, err := call(b, api.QueuesComplete, &api.QueuesCompleteRequest{CommandID: b.id(), Lane: b.lane("in"), Items: []api.CompleteItem{{Token: d.Token, Action: api.ActionNack, Terminal: true}}})
	b.must(err)
	redrive := func() api.Delivery {
		_, err := call(b, api.QueuesRedrive, &api.QueuesRedriveRequest{CommandID: b.id(), Lane: b.lane("in"), MessageID: "m"})
		b.must(err)
		return b.receive()
	}
	d = redrive()
	r1, err := b.process(d, "billing", output("out", "o"))
	b.must(err)
	b.later(2 * 86_400_000) // the acked message is forgotten, the inbox record is not
	b.enqueue("in", "m")
	d = b.receive()
	r2, err := b.process(d, "billing", output("out", "o"))
	b.must(err)
	if !r2.AlreadyProcessed || r2.EffectsToken != r1.EffectsToken || r2.State != api.StateAcked || b.count("in") != 0 || b.count("out") != 1 {
		t.Errorf("%+v, in %d out %d", r2, b.count("in"), b.count("out"))
	}
}

func TestOtherEffectsOfAProcessedInputAreAConflict(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	d := b.receive()
	_, err := b.process(d, "billing", output("out", "o1"))
	b.must(err)
	before := b.rows()
	for _, effects := range [][]api.Mutation{{output("out", "o2")}, {}, {output("out", "o1"), output("out", "o2")}} {
		if _, err := b.process(d, "billing", effects...); code(err) != "Conflict/processed_differently" {
			t.Errorf("%d effects: %v", len(effects), err)
		}
	}
	b.same("a conflict", before)
}

func TestScopesAndExecutionGenerationsProcessAnInputOnceEach(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	d := b.receive()
	_, err := b.process(d, "a", output("out", "o1"))
	b.must(err)
	// The delivery is acknowledged; another scope has nothing to acknowledge.
	before := b.rows()
	if _, err := b.process(d, "b", output("out", "o2")); code(err) != "StaleLease/lease_replaced" {
		t.Errorf("another scope: %v", err)
	}
	_, err = call(b, api.QueuesProcess, &api.QueuesProcessRequest{CommandID: b.id(), Lane: b.lane("in"), Token: d.Token, HandlerScope: "a", ExecutionGeneration: 2})
	if code(err) != "StaleLease/lease_replaced" {
		t.Errorf("another generation: %v", err)
	}
	b.same("a stale delivery", before)
}

func TestCase082_AWorkerThatLostItsLeaseCommitsNothing(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	old := b.receive()
	b.now += 30_000
	before := b.rows()
	if _, err := b.process(old, "billing", output("out", "o")); code(err) != "LeaseExpired/lease_expired" {
		t.Errorf("after the deadline: %v", err)
	}
	b.same("an expired lease", before)
	b.later(60_000)
	fresh := b.receive()
	before = b.rows()
	if _, err := b.process(old, "billing", output("out", "o")); code(err) != "StaleLease/lease_replaced" {
		t.Errorf("the old holder: %v", err)
	}
	b.same("a stale lease", before)
	if _, err := b.process(fresh, "billing", output("out", "o")); err != nil {
		t.Errorf("the new holder: %v", err)
	}
	if r, err := b.process(old, "billing", output("out", "o")); err != nil || !r.AlreadyProcessed || r.State != api.StateAcked {
		t.Errorf("the old holder learns that it is done: %+v %v", r, err)
	}
}

func TestCase097_ARefusedEffectRollsBackTheAcknowledgement(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	b.enqueue("out", "taken")
	d := b.receive()
	before := b.rows()
	_, err := b.process(d, "billing", output("out", "o1"), output("out", "taken"))
	if code(err) != "Conflict/message_exists" {
		t.Errorf("%v", err)
	}
	b.same("a refused effect", before)
	if _, err := b.process(d, "billing", output("out", "o1")); err != nil {
		t.Errorf("the lease is live still: %v", err)
	}
}

func TestTheQuotaAnAckReleasesCanFundAnEffectInTheSameQueue(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxMessages: 1})
	b.enqueue("in", "m")
	d := b.receive()
	if _, err := b.process(d, "chain", output("in", "next")); err != nil {
		t.Fatal(err)
	}
	if next := b.receive(); next.MessageID != "next" {
		t.Errorf("received %s", next.MessageID)
	}
}

func TestARepeatedProcessCommandAnswersItsReceipt(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	d := b.receive()
	req := &api.QueuesProcessRequest{CommandID: b.id(), Lane: b.lane("in"), Token: d.Token, HandlerScope: "s", Effects: []api.Mutation{output("out", "")}}
	one, err := call(b, api.QueuesProcess, req)
	b.must(err)
	b.now += 100_000
	two, err := call(b, api.QueuesProcess, req)
	b.must(err)
	if !reflect.DeepEqual(one, two) {
		t.Errorf("%+v\nthen %+v", one, two)
	}
}

func TestATokenThatDoesNotHoldIsRefusedAtTheDoor(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	d := b.receive()
	position := b.m.Head().Position
	_, err := b.process(api.Delivery{Token: d.Token[:len(d.Token)-1] + "_"}, "s")
	if code(err) != "Validation/bad_token" || b.m.Head().Position != position {
		t.Errorf("%v, position %d was %d", err, b.m.Head().Position, position)
	}
	lane := b.lane("out")
	_, err = call(b, api.QueuesProcess, &api.QueuesProcessRequest{CommandID: b.id(), Lane: lane, Token: d.Token, HandlerScope: "s"})
	if code(err) != "TokenInvalidated/other_lane" {
		t.Errorf("another lane: %v", err)
	}
}

func TestInboxRecordsAreForgottenAfterTheirHorizonInBoundedSteps(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for i := range 600 {
		b.now++
		b.enqueue("in", string(rune('a'+i%26))+string(rune('a'+i/26)))
		_, err := b.process(b.receive(), "s")
		b.must(err)
	}
	last := b.now
	b.later(start + 1 + horizonMillis - 1 - b.now)
	if n := b.check()["inboxRecords"]; n != 600 {
		t.Errorf("%d records a millisecond before the first horizon", n)
	}
	b.later(1)
	if n := b.check()["inboxRecords"]; n != 599 {
		t.Errorf("%d records at the first horizon", n)
	}
	b.later(last + horizonMillis - b.now)
	if n := b.check()["inboxRecords"]; n != 0 {
		t.Errorf("%d records after the last horizon", n)
	}
}

func TestProcessAddsTwoRowsToWhatItsPartsCost(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	cost := func() kv.Work {
		b.enqueue("in", b.id())
		d := b.receive()
		before := b.m.Work()
		_, err := b.process(d, "s")
		b.must(err)
		w := b.m.Work()
		return kv.Work{Puts: w.Puts - before.Puts, Deletes: w.Deletes - before.Deletes, Scans: w.Scans - before.Scans}
	}
	cost() // arms pruning
	// message, finished row, lane head; inbox record and order; receipt and shard head
	if w := cost(); w != (kv.Work{Puts: 7, Deletes: 2}) {
		t.Errorf("process cost %+v", w)
	}
}
