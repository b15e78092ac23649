package queue

import (
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// used makes n messages of which each was tried once and is waiting: every third
// one for an hour, the others ready, in three priorities.
func (b *bed) used(n int) {
	b.t.Helper()
	for i := range n {
		m := msg(fmt.Sprintf("m%04d", i))
		priority := 3 + i%3
		m.Priority = &priority
		b.enqueue(m)
	}
	var held []api.Delivery
	for len(held) < n {
		held = append(held, b.receive(200).Deliveries...)
	}
	for i, d := range held {
		delay := int64(0)
		if i%3 == 0 {
			delay = 3_600_000
		}
		b.nack(d, delay)
	}
}

// lower sets maxAttempts of "work".
func (b *bed) lower(attempts int64) {
	b.t.Helper()
	p := b.policy()
	p.MaxAttempts = attempts
	b.configure("work", p, func(*api.Resource) {})
}

// step goes on with the sweep as a tick does, which removes the due row first;
// false when none is under way.
func (b *bed) step(budget int) (more bool) {
	b.t.Helper()
	b.write(func(c *op.Ctx) error {
		owner := table.Owner{Space: c.ShardSpace(), Resource: b.queues["work"].ID}
		if s, ok, err := limitSweeps.Get(c.Tx, owner); err != nil {
			return err
		} else if ok {
			table.DueRows.Delete(c.Tx, table.DueKey{Shard: owner.Shard, When: s.Armed, Kind: table.DueLimit, Owner: string(owner.Append(nil))})
		}
		if err := applyLimit(c, owner.Append(nil), budget); err != nil {
			return err
		}
		_, ok, err := limitSweeps.Get(c.Tx, owner)
		more = ok
		return err
	})
	return more
}

func TestALoweredLimitIsSweptInBoundedStepsThatSurviveARestart(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightMessages: 10_000})
	b.used(600)
	b.lower(1)
	last := int64(0)
	for last < 600 {
		b.entry(machine.Tick())
		s := b.status()
		if moved := s.Counts.DeadLettered - last; moved < 200 || moved > 256 {
			if s.Counts.DeadLettered != 600 {
				t.Fatalf("one tick put %d aside", moved)
			}
		}
		last = s.Counts.DeadLettered
		b.check()
		b.restart()
	}
	b.tick()
	if next := b.m.NextDue(); next != 0 && next <= b.now {
		t.Errorf("something is due still")
	}
}

func TestASweepComesToTheSameWhateverItsSteps(t *testing.T) {
	var want map[string]string
	for _, budget := range []int{256, 1, 2, 3, 7} {
		b := newBed(t, api.QueuePolicy{DeadLetter: api.DeadLetterPolicy{MaxMessages: 20}})
		b.used(30)
		b.enqueue(msg("new"))
		b.lower(1)
		steps := 1
		for b.step(budget) {
			steps++
		}
		b.check()
		if s := b.status(); s.Counts.DeadLettered != 20 || s.Counts.PendingDeadLetter != 10 || s.Counts.Ready != 1 {
			t.Fatalf("budget %d: %+v", budget, s.Counts)
		}
		if got := b.rows(); want == nil {
			want = got
		} else if !equalRows(want, got) {
			t.Errorf("budget %d: other rows", budget)
		}
		if least := 30 / budget; steps < least {
			t.Errorf("budget %d: done in %d steps", budget, steps)
		}
	}
}

func TestASweepFindsEveryPartitionAndLeavesOtherQueuesAlone(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.configure("other", api.QueuePolicy{}, func(*api.Resource) {})
	keys := []string{"main", "a", "b", "c", "d", "e"}
	for _, key := range keys {
		b.place.Key = key
		b.used(2)
	}
	other := api.LaneRef{Partition: b.place, Queue: "other"}
	_, err := b.commit(api.Mutation{Enqueue: &api.Enqueue{Queue: "other", Message: msg("x")}})
	b.must(err)
	b.lower(1)
	for b.step(2) {
		b.check()
	}
	for _, key := range keys {
		b.place.Key = key
		if s := b.status(); s.Counts.DeadLettered != 2 {
			t.Errorf("%s: %+v", key, s.Counts)
		}
	}
	r, err := ask(b, api.QueuesStatus, &api.QueuesStatusRequest{Lane: other})
	b.must(err)
	if r.Counts.Ready != 1 {
		t.Errorf("the other queue: %+v", r.Counts)
	}
}

func TestOnlyALowerLimitBeginsASweepAndALowerOneBeginsItAnew(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxAttempts: 4})
	b.used(9)
	for _, attempts := range []int64{4, 5} {
		b.lower(attempts)
		if b.m.NextDue() <= b.now || b.step(256) {
			t.Errorf("limit %d began a sweep", attempts)
		}
	}
	b.lower(3) // nobody has used three
	if !b.step(4) {
		t.Fatalf("no sweep")
	}
	b.lower(1)
	for b.step(4) {
	}
	if s := b.status(); s.Counts.DeadLettered != 9 {
		t.Errorf("%+v", s.Counts)
	}
}

func TestAMessageWithALimitOfItsOwnKeepsIt(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	m := msg("own")
	m.MaxAttempts = 3
	b.enqueue(m, msg("not"))
	for _, d := range b.receive(2).Deliveries {
		b.nack(d, 0)
	}
	b.lower(1)
	b.tick()
	if b.state("own") != api.StateReady || b.state("not") != api.StateDeadLettered {
		t.Errorf("own is %s, not is %s", b.state("own"), b.state("not"))
	}
}

func TestNoStepBetweenALoweredLimitAndItsSweepLetsAMessageSlipThrough(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue(msg("rescheduled"), msg("ready"), msg("released"), msg("held"))
	for _, d := range b.receive(4).Deliveries {
		b.nack(d, 0)
	}
	held := b.receive(4).Deliveries
	b.nack(held[0], 3_600_000)
	b.nack(held[1], 0)
	b.lower(1)
	b.must(b.reschedule("rescheduled", b.now))
	if r := b.complete(api.CompleteItem{Token: held[2].Token, Action: api.ActionRelease}); r[0].State != api.StateDeadLettered {
		t.Errorf("released: %+v", r[0])
	}
	if got := b.state("rescheduled"); got != api.StateDeadLettered {
		t.Errorf("rescheduled is %s", got)
	}
	if r := b.receive(4); len(r.Deliveries) != 0 || b.state("ready") != api.StateDeadLettered {
		t.Errorf("received %v", ids(r))
	}
	b.tick()
	if r := b.nack(held[3], 0); r.State != api.StateDeadLettered {
		t.Errorf("held, then nacked: %+v", r)
	}
}

func TestASweepEndsWithItsQueue(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.used(3)
	b.lower(1)
	gone := struct {
		ID       uint32           `cbor:"1,keyasint"`
		Tenant   string           `cbor:"2,keyasint"`
		Database string           `cbor:"3,keyasint"`
		Name     string           `cbor:"4,keyasint"`
		Kind     api.ResourceKind `cbor:"5,keyasint"`
	}{b.queues["work"].ID, "default", "main", "work", api.KindQueue}
	b.write(func(c *op.Ctx) error { return directory.Forget(c, table.EncodeCBOR(nil, &gone)) })
	b.tick()
	if left := b.rows(); len(left) != 0 {
		t.Errorf("%d rows are left", len(left))
	}
}

func TestACheckFindsASweepThatIsNotDue(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.used(3)
	b.lower(1)
	b.check()
	b.broken = true
	b.write(func(c *op.Ctx) error {
		owner := table.Owner{Space: c.ShardSpace(), Resource: b.queues["work"].ID}
		s, _, err := limitSweeps.Get(c.Tx, owner)
		table.DueRows.Delete(c.Tx, table.DueKey{Shard: shard, When: s.Armed, Kind: table.DueLimit, Owner: string(owner.Append(nil))})
		return err
	})
	count := &silent{}
	b.t = count
	b.check()
	if b.t = t; count.found != 1 {
		t.Errorf("%d findings", count.found)
	}
}
