package machine

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
)

func (i Identity) with(id uuid.UUID) Identity { i.ID = id; return i }

func TestTheSameCommandAgainIsAnsweredFromItsReceiptAndChangesNothing(t *testing.T) {
	b := newBed(t)
	for _, id := range []uuid.UUID{b.id7(), b.id4()} {
		cmd := b.commit(worker.with(id), putAt(id.String(), `{"n":1}`, 0))
		first := b.accepted(b.do(cmd))
		rows, head := b.rows(), b.m.Head()
		for range 2 {
			b.now += 1000
			again := b.do(cmd)
			if !again.Replayed || shown(t, again) != shown(t, first) {
				t.Errorf("answered %s, before %s", shown(t, again), shown(t, first))
			}
			b.restart()
		}
		if d := difference(b.rows(), rows); d != "" {
			t.Errorf("the repetition changed the state: %s", d)
		}
		if now := b.m.Head(); now.Position != head.Position+2 || now.Digest != head.Digest {
			t.Errorf("the head went from %+v to %+v", head, now)
		}
	}
}

func TestTheReceiptSaysWhereAndWhenTheCommandWasCommitted(t *testing.T) {
	b := newBed(t)
	cmd := b.commit(worker, put("a", "{}"))
	out := b.accepted(b.do(cmd))
	got := out.Response.(*api.CommandsCommitResponse).Receipt
	want := api.Receipt{
		CommandID: uuid.UUID(cmd.ID).String(), CommittedAt: api.Time(b.now), Durability: api.DurableDisk,
		Token: api.CommitToken{Incarnation: uuid.UUID(incarnation).String(), Partition: place, Position: b.m.Head().Position, OwnershipEpoch: 1},
	}
	if got != want || out.Position != want.Token.Position {
		t.Errorf("the receipt is %+v, want %+v", got, want)
	}
}

func TestACommandIDWithOtherContentIsAConflictThatIsNotStored(t *testing.T) {
	b := newBed(t)
	id := b.id7()
	b.accepted(b.do(b.commit(worker.with(id), put("a", "{}"))))
	rows := b.rows()
	for _, other := range []Command{
		b.commit(worker.with(id), put("a", `{"n":1}`)),
		b.command(worker.with(id), api.QueuesReceive.Operation, &api.QueuesReceiveRequest{Lane: api.LaneRef{Partition: place, Queue: "work"}}),
	} {
		b.refused(b.do(other), fault.Conflict, "command_id_reused", false)
	}
	if d := difference(b.rows(), rows); d != "" {
		t.Errorf("the conflict changed the state: %s", d)
	}
}

func TestTheSameIDOfAnotherPrincipalOrPartitionIsAnotherCommand(t *testing.T) {
	b := newBed(t)
	id := b.id7()
	elsewhere := worker
	elsewhere.Partition.Key = "other"
	elsewhere.Hash = partitions.Hash(elsewhere.Partition)
	for i, who := range []Identity{worker, root, elsewhere} {
		out := b.accepted(b.do(b.commit(who.with(id), put(string(rune('a'+i)), "{}"))))
		if out.Replayed {
			t.Errorf("command %d was taken for another", i)
		}
	}
	if n := b.count(table.Document); n != 3 {
		t.Errorf("%d documents are stored, want 3", n)
	}
}

func TestARefusalIsStoredAndAnsweredAgain(t *testing.T) {
	b := newBed(t)
	b.accepted(b.do(b.commit(worker, put("a", "{}"))))
	cmd := b.commit(worker, put("b", "{}"), putAt("a", "{}", 9))
	first := b.do(cmd)
	b.refused(first, fault.RevisionConflict, first.Err.Reason, true)
	if first.Err.Retry != fault.RetryNewID && first.Err.Retry != fault.RetryAfterChange {
		t.Errorf("the advice is %s", first.Err.Retry)
	}
	b.accepted(b.do(b.commit(worker, api.Mutation{DeleteDocument: &api.DeleteDocument{Collection: "docs", ID: "a"}})))
	b.restart()
	if again := b.do(cmd); !again.Replayed || shown(t, again) != shown(t, first) {
		t.Errorf("answered %s, before %s", shown(t, again), shown(t, first))
	}
	if n := b.count(table.Document); n != 1 {
		t.Errorf("%d documents are stored: the refused batch left something", n)
	}
}

func TestARefusedCommandLeavesItsReceiptAndNothingElse(t *testing.T) {
	b := newBed(t)
	b.accepted(b.do(b.commit(worker, put("a", "{}")))) // arms pruning
	rows := b.rows()
	nowhere := worker
	nowhere.Partition.Key = "never written to"
	nowhere.Hash = partitions.Hash(nowhere.Partition)
	b.refused(b.do(b.commit(nowhere, put("b", "{}"), put("c", "{}"), putAt("a", "{}", 9))), fault.RevisionConflict, "revision", true)
	left := map[byte]int{}
	for k := range b.rows() {
		if _, there := rows[k]; !there {
			left[k[0]]++
		}
	}
	if len(left) != 1 || left[byte(table.Receipt)] != 1 {
		t.Errorf("rows by table: %v", left)
	}
}

func TestARefusalOfTheMomentIsNotStored(t *testing.T) {
	b := newBed(t)
	b.pause("work")
	cmd := b.command(worker, api.QueuesReceive.Operation, &api.QueuesReceiveRequest{Lane: api.LaneRef{Partition: place, Queue: "work"}})
	rows := b.rows()
	out := b.do(cmd)
	b.refused(out, fault.DispatchPaused, out.Err.Reason, false)
	if out.Err.Retry != fault.RetrySameID {
		t.Errorf("the advice is %s", out.Err.Retry)
	}
	if d := difference(b.rows(), rows); d != "" {
		t.Errorf("it left something: %s", d)
	}
}

func TestAnOldCommandIDIsRefusedFromOneMillisecondPastTheHorizon(t *testing.T) {
	b := newBed(t)
	for _, c := range []struct {
		age    int64
		reason string
	}{{horizonMillis - 1, ""}, {horizonMillis, ""}, {horizonMillis + 1, "receipt_horizon"}, {10 * horizonMillis, "receipt_horizon"}} {
		out := b.do(b.commit(worker.with(b.id7At(b.now-c.age)), put("a", "{}")))
		if c.reason == "" {
			b.accepted(out)
			continue
		}
		b.refused(out, fault.CursorExpired, c.reason, false)
	}
	if n := b.count(table.Receipt); n != 2 {
		t.Errorf("%d receipts, want those of the two accepted", n)
	}
}

func TestACommandIDMoreThanADayAheadIsRefused(t *testing.T) {
	b := newBed(t)
	b.accepted(b.do(b.commit(worker.with(b.id7At(b.now+futureMillis)), put("a", "{}"))))
	b.refused(b.do(b.commit(worker.with(b.id7At(b.now+futureMillis+1)), put("a", "{}"))), fault.Validation, "command_id_in_future", false)
	b.accepted(b.do(b.commit(worker.with(b.id4()), put("a", "{}")))) // has no time
}

// An id that was carried out once is, whenever it comes again, answered from its
// receipt or refused as too old: never carried out twice.
func TestACommandWithAVersionSevenIDIsNeverCarriedOutTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBed(t)
		defer b.close()
		age := rapid.Int64Range(-futureMillis, horizonMillis).Draw(t, "age")
		cmd := b.commit(worker.with(b.id7At(b.now-age)), put("a", "{}"))
		first := shown(t, b.accepted(b.do(cmd)))
		for range 6 {
			b.now += rapid.Int64Range(0, keepMillis).Draw(t, "later")
			b.tick()
			out := b.do(cmd)
			if out.Err != nil {
				b.refused(out, fault.CursorExpired, "receipt_horizon", false)
				continue
			}
			if got := shown(t, out); !out.Replayed || got != first {
				t.Fatalf("answered %s after %s", got, first)
			}
		}
		b.check()
	})
}

// A receipt lives at least its horizon, whatever its id says, and is gone two
// horizons and an hour after it was stored, or after the time in its id.
func TestAReceiptLivesAtLeastItsHorizonAndIsPrunedAfterTwo(t *testing.T) {
	for _, age := range []int64{-futureMillis, 0, horizonMillis} {
		b := newBed(t)
		cmd := b.commit(worker.with(b.id7At(b.now-age)), put("a", "{}"))
		b.accepted(b.do(cmd))
		b.now += horizonMillis
		b.tick()
		if b.count(table.Receipt) != 1 {
			t.Errorf("age %d: the receipt is gone after its horizon", age)
		}
		b.now = start + max(0, -age) + keepMillis + hourMillis
		b.tick()
		if b.count(table.Receipt) != 0 || b.m.Head().Prune != 0 {
			t.Errorf("age %d: %d receipts are left, pruning is armed for %d", age, b.count(table.Receipt), b.m.Head().Prune)
		}
		b.check()
	}
}

func TestAReceiptWithoutATimeIsPrunedToTheMillisecond(t *testing.T) {
	b := newBed(t)
	cmd := b.commit(worker.with(b.id4()), put("a", "{}"))
	b.accepted(b.do(cmd))
	b.now += keepMillis - 1
	b.tick()
	if out := b.do(cmd); !out.Replayed {
		t.Error("it was forgotten a millisecond early")
	}
	b.now++
	b.tick()
	if b.count(table.Receipt) != 0 || b.count(table.ReceiptAt) != 0 {
		t.Errorf("%d receipts and %d index rows are left", b.count(table.Receipt), b.count(table.ReceiptAt))
	}
	if out := b.accepted(b.do(cmd)); out.Replayed {
		t.Error("a forgotten id was answered from a receipt")
	}
}

func TestReceiptsArePrunedInBoundedStepsThatARestartDoesNotLose(t *testing.T) {
	b := newBed(t)
	const each = tickRows + 100
	for range each {
		b.accepted(b.do(b.commit(worker, put("a", "{}"))))
		b.accepted(b.do(b.commit(worker.with(b.id4()), put("a", "{}"))))
	}
	b.now += keepMillis + hourMillis
	left := 2 * each
	for step := 0; left > 0; step++ {
		b.do(Tick())
		now := b.count(table.Receipt)
		if now >= left || left-now > 2*tickRows || step > 3 {
			t.Fatalf("step %d took %d of %d receipts", step, left-now, left)
		}
		left = now
		b.restart()
	}
	if b.count(table.ReceiptAt) != 0 || b.count(table.Due) != 0 || b.m.NextDue() != 0 {
		t.Errorf("%d index rows and %d due rows are left", b.count(table.ReceiptAt), b.count(table.Due))
	}
	b.check()
}

func TestTheOutcomeOfACommandCanBeAskedFor(t *testing.T) {
	b := newBed(t)
	ask := func(who Identity, id uuid.UUID) *api.CommandsOutcomeResponse {
		snap := b.store.NewSnapshot()
		defer snap.Close()
		h, _ := b.registry.Handler(api.CommandsOutcome.Name)
		v := &op.View{Scope: op.Scope{
			R: snap, Now: b.now, Space: table.Space{Shard: shard, Partition: who.Hash}, Partition: who.Partition,
			Principal: &api.Principal{ID: who.Principal, Tenant: who.Tenant}, Incarnation: incarnation, Registry: b.registry,
		}}
		resp, err := h.Run(v, &api.CommandsOutcomeRequest{CommandID: id.String(), Partition: who.Partition})
		b.must(err)
		return resp.(*api.CommandsOutcomeResponse)
	}
	yes, no, never := b.id7(), b.id7(), b.id7()
	committed := b.accepted(b.do(b.commit(worker.with(yes), put("a", "{}")))).Response.(*api.CommandsCommitResponse)
	refused := b.do(b.commit(worker.with(no), putAt("a", "{}", 9)))
	if r := ask(worker, yes); r.Status != api.CommandCommitted || r.Operation != api.CommandsCommit.Name || r.Receipt == nil || *r.Receipt != committed.Receipt {
		t.Errorf("the committed one: %+v", r)
	}
	if r := ask(worker, no); r.Status != api.CommandRejected || r.Error == nil || r.Error.Error() != refused.Err.Error() || !r.Error.Recorded {
		t.Errorf("the rejected one: %+v", r)
	}
	for who, id := range map[Identity]uuid.UUID{worker: never, root: yes} {
		if r := ask(who, id); r.Status != api.CommandUnknown || r.Receipt != nil {
			t.Errorf("one that is unknown to the caller: %+v", r)
		}
	}
}

func TestARepetitionCostsAReadOfTheReceiptAndNoWrite(t *testing.T) {
	b := newBed(t)
	cmd := b.commit(worker, put("a", "{}"))
	b.accepted(b.do(cmd))
	before := b.m.Work()
	b.do(cmd)
	after := b.m.Work()
	if gets, puts := after.Gets-before.Gets, after.Puts-before.Puts; gets > 2 || puts > 1 || after.Scans != before.Scans || after.Deletes != before.Deletes {
		t.Errorf("%d reads and %d writes (the head is one), scans %d", gets, puts, after.Scans-before.Scans)
	}
}
