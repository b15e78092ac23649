package group

import (
	"errors"
	"slices"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

func TestDeleteRemovesEverythingOfAGroupAndNothingElse(t *testing.T) {
	b := newBed(t, api.GroupPolicy{Ordered: api.OrderPerKey, DeadLetter: api.GroupDeadLetters{MaxEvents: 2}})
	b.create("other", api.GroupDefinition{})
	left := len(b.rows())
	b.publish(keyedEvent("x"), keyedEvent("x"), keyedEvent("y"), keyedEvent("z"), event("a"), event("a"), event("a"))
	published := len(b.rows()) - left
	d := b.receive(7).Deliveries // 1 3 4 5 6 7; 2 is blocked
	b.terminal(d[1])
	b.terminal(d[2])
	b.terminal(d[3]) // held
	b.nack(d[4], 60_000)
	_, err := b.redrive(3, 0)
	b.must(err)
	b.must(b.skip(7))
	b.check()
	before := b.rows()
	wants(t, "an unconfirmed delete", b.delete("g", 1), "RevisionConflict/checkpoint")
	b.same("a refused delete", before)
	r, err := call(b, api.SubscriptionsDelete, &api.SubscriptionsDeleteRequest{CommandID: b.id(), Group: b.ref("g"), Confirm: new(uint64(0))})
	b.must(err)
	if r.DeadLetters != 2 {
		t.Errorf("%+v", r)
	}
	b.check()
	b.tick()                                  // what it left goes in steps
	if n := len(b.rows()); n != published+2 { // definition and head of "other"
		t.Errorf("%d rows are left, want %d", n, published+2)
	}
	_, err = b.tryReceive(api.SubscriptionsReceiveRequest{})
	wants(t, "a receive", err, "NotFound/unknown_group")
	wants(t, "another delete", b.delete("g", 0), "NotFound/unknown_group")
	if r, err := b.cheap(api.SubscriptionsReceiveRequest{}); r != nil || err != nil {
		t.Errorf("certain of no group: %+v %v", r, err)
	}
	b.later(86_400_000)
	b.create("g", api.GroupDefinition{}) // another one
	if out := b.complete(api.CompleteItem{Token: d[0].Token, Action: api.ActionAck})[0]; code(out.Error) != "TokenInvalidated/other_group" {
		t.Errorf("a token of the deleted group: %+v", out)
	}
	if got := positions(b.receive(10)); !slices.Equal(got, upTo(1, 7)) {
		t.Errorf("received %v", got)
	}
}

// own is how many rows of groups there are, and of things due for them.
func (b *bed) own() (n int) {
	b.t.Helper()
	for k := range b.rows() {
		if slices.ContainsFunc(Tables(), func(t table.Info) bool { return t.ID == table.ID(k[0]) }) ||
			table.ID(k[0]) == table.Due && (k[11] == byte(table.DueGroup) || k[11] == byte(table.DueRemoval)) {
			n++
		}
	}
	return n
}

// large is a group with so many rows in its window and as many dead letters.
func large(t *testing.T, n int) *bed {
	b := newBed(t, api.GroupPolicy{MaxWindow: int64(2 * n), MaxInFlight: int64(2 * n)})
	b.fill(2 * n)
	for issued := 0; issued < 2*n; {
		d := b.receive(256).Deliveries
		var terminal []api.CompleteItem
		for i := range d {
			if issued++; issued > 1 && issued <= n+1 {
				terminal = append(terminal, api.CompleteItem{Token: d[i].Token, Action: api.ActionNack, Terminal: true})
			}
		}
		if len(terminal) > 0 {
			b.complete(terminal...)
		}
	}
	return b
}

func TestADeleteCostsTheSameWhateverTheGroupHolds(t *testing.T) {
	var first kv.Work
	for i, n := range []int{10, 2_000} {
		b := large(t, n)
		cost := b.cost(otherReads, func() { b.must(b.delete("g", 0)) })
		if i == 0 {
			first = cost
		} else if cost != first {
			t.Errorf("with %d rows %+v, want %+v", n, cost, first)
		}
	}
}

func TestWhatADeletedGroupLeavesGoesInBoundedStepsThatSurviveARestart(t *testing.T) {
	b := large(t, 600)
	b.must(b.delete("g", 0))
	b.create("g", api.GroupDefinition{}) // another one, while the rows of the first are there
	b.check()
	d := b.receive(3).Deliveries
	kept := 2 + 3 + 1 + 1 // definition, head, three rows, their lease, its due row
	for steps := 0; ; steps++ {
		before := b.own()
		if before == kept {
			if steps < 5 {
				t.Errorf("it took %d steps", steps)
			}
			break
		}
		if out := b.entry(machine.Tick()); out.Err != nil {
			t.Fatal(out.Err)
		}
		if removed := before - b.own(); removed > 256+1 { // and the due row
			t.Fatalf("a step removed %d rows", removed)
		}
		if steps%2 == 1 {
			b.restart()
		}
		b.check()
	}
	b.ack(d...)
	b.looks(3, 3, "")
}

func TestASourceThatIsDeletedMeanwhileTakesTheRestWithIt(t *testing.T) {
	b := large(t, 300)
	b.must(b.delete("g", 0))
	b.entry(machine.Tick())
	owner := b.key().Owner
	for range 1_000 {
		n := 0
		b.write(func(c *op.Ctx) (err error) { n, err = purge(c, owner, 100); return err })
		if n < 100 {
			break
		}
	}
	if n := b.own(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	b.check()
}

func TestTheCheckFindsARemovalThatWillNotGoOn(t *testing.T) {
	b := large(t, 300)
	b.must(b.delete("g", 0))
	b.entry(machine.Tick())
	all := b.rows()
	markers := b.table(removals.ID)
	if len(markers) != 1 {
		t.Fatalf("%d markers", len(markers))
	}
	for k := range all {
		if id := table.ID(k[0]); id != removals.ID && (id != table.Due || k[11] != byte(table.DueRemoval)) {
			continue
		}
		b.write(func(c *op.Ctx) error { c.Tx.Delete([]byte(k)); return nil })
		if !b.unsound() {
			t.Errorf("the check does not miss the row of table %d", k[0])
		}
		b.write(func(c *op.Ctx) error { c.Tx.Put([]byte(k), []byte(all[k])); return nil })
	}
	b.check()
}

// steps removes what a deleted group leaves, so many rows a step, and says how many
// steps it took.
func (b *bed) steps(f ref, budget int) (n int) {
	b.t.Helper()
	for {
		before, more := b.own(), false
		b.write(func(c *op.Ctx) error {
			m, ok, err := removals.Get(c.Tx, f)
			if err != nil || !ok {
				return err
			}
			table.Arm(c.Tx, f.Owner.Shard, table.DueRemoval, f.append(nil), &m.Armed, 0) // as a tick does
			more = true
			return applyRemoval(c, f.append(nil), budget)
		})
		if !more {
			return n
		}
		n++
		removed := before - b.own()
		if left := len(b.table(removals.ID)); left == 0 {
			removed-- // its due row, too
		}
		if removed < 1 || removed > budget {
			b.t.Fatalf("step %d of %d removed %d rows", n, budget, removed)
		}
		b.check()
	}
}

func (b *bed) number(group string) (f ref) {
	b.t.Helper()
	b.must(b.view(func(v *op.View) error {
		_, n, def, err := look(&v.Scope, b.ref(group))
		if err == nil {
			f = def.ref(n)
		}
		return err
	}))
	return f
}

func TestEveryBudgetRemovesAllThatADeletedGroupLeaves(t *testing.T) {
	for _, extra := range []int{-1, 0, 1} {
		b := busy(t)
		f := b.number("g")
		b.must(b.delete("g", b.status().State.Checkpoint))
		all := b.own() - 1 // its rows and the marker, without the due row
		if n := b.steps(f, all+extra); n != 2 && extra < 0 || n != 1 && extra >= 0 {
			t.Errorf("of %d rows, %d a step: %d steps", all, all+extra, n)
		}
	}
	for _, budget := range []int{1, 2, 7} {
		b := busy(t)
		f := b.number("g")
		b.must(b.delete("g", b.status().State.Checkpoint))
		all := b.own() - 1
		if n := b.steps(f, budget); n != (all+budget-1)/budget {
			t.Errorf("of %d rows, %d a step: %d steps", all, budget, n)
		}
		if n := b.own(); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	}
}

func TestARemovalDoesNotWalkOverWhatItRemovedBefore(t *testing.T) {
	b := large(t, 300)
	f := b.number("g")
	b.must(b.delete("g", 0))
	b.entry(machine.Tick())
	stray := rowKey{f, 1} // among the dead letters, before those that are left
	b.write(func(c *op.Ctx) error {
		deadLetters.Put(c.Tx, stray, &deadLetter{entry: entry{State: dead}})
		return nil
	})
	b.tick()
	if left := b.table(deadLetters.ID); len(left) != 1 || b.own() != 1 {
		t.Errorf("%d dead letters and %d rows in all are left, want the one that is out of its way", len(left), b.own())
	}
	b.write(func(c *op.Ctx) error { deadLetters.Delete(c.Tx, stray); return nil })
}

func TestARemovalThatGoesOnAtAnotherGroupIsDamage(t *testing.T) {
	b := large(t, 10)
	b.create("other", api.GroupDefinition{})
	f, other := b.number("g"), b.number("other")
	b.must(b.delete("g", 0))
	before := b.rows()
	b.write(func(c *op.Ctx) error {
		m, _, err := removals.Get(c.Tx, f)
		m.Next = rows.Bytes(rowKey{other, 1})
		removals.Put(c.Tx, f, &m)
		return err
	})
	b.broken = true
	if findings, _ := b.audit(); len(findings) != 1 || findings[0].Invariant != "removal" {
		t.Errorf("the check finds %v", findings)
	}
	_, _, _, err := b.m.Apply(&machine.Entry{At: b.now, Seed: b.seed, Epoch: 1, Commands: []machine.Command{machine.Tick()}})
	if !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a step: %v", err)
	}
	b.must(b.m.Close())
	b.machine()
	if n := len(b.rows()); n != len(before) {
		t.Errorf("%d rows, were %d", n, len(before))
	}
}

func TestAMarkerOfAGroupThatIsThereIsFoundAndRemovesNothing(t *testing.T) {
	b := busy(t)
	f := b.number("g")
	before := b.rows()
	b.write(func(c *op.Ctx) error { armRemoval(c, f, &removal{}); return nil })
	b.broken = true
	findings, _ := b.audit()
	for _, want := range []string{"removal", "due"} { // the marker, and what makes it due
		if !slices.ContainsFunc(findings, func(x op.Finding) bool { return x.Invariant == want && !x.Derived }) {
			t.Errorf("the check finds %v", findings)
		}
	}
	_, _, _, err := b.m.Apply(&machine.Entry{At: b.now, Seed: b.seed, Epoch: 1, Commands: []machine.Command{machine.Tick()}})
	if !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a step: %v", err)
	}
	b.must(b.m.Close())
	b.machine()
	for k, v := range before {
		if b.rows()[k] != v {
			t.Errorf("row %x was removed or changed", k)
		}
	}
}

func TestTheCheckFindsAHeadAndASkipThatADeleteDidNotRemove(t *testing.T) {
	b := large(t, 10)
	f := b.number("g")
	b.must(b.delete("g", 0))
	for what, add := range map[string]func(c *op.Ctx) error{
		"a head": func(c *op.Ctx) error { heads.Put(c.Tx, f, &head{}); return nil },
		"a skip": func(c *op.Ctx) error { skips.Put(c.Tx, rowKey{f, 1}, &skip{Position: 1}); return nil },
	} {
		b.write(add)
		if findings, _ := b.audit(); len(findings) != 1 || findings[0].Invariant != "index" {
			t.Errorf("%s: the check finds %v", what, findings)
		}
		b.write(func(c *op.Ctx) error { heads.Delete(c.Tx, f); skips.Delete(c.Tx, rowKey{f, 1}); return nil })
	}
}
