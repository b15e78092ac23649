package replica

import (
	"context"
	"fmt"
	"testing"

	"github.com/keyload/keyload/fault"
)

func TestAnotherNodeCanBeMadeToLead(t *testing.T) {
	c := newCluster(t, 3)
	for _, id := range []uint64{2, 3, 1} {
		l := c.leading()
		c.must(l.log.Transfer(ctx, data, id))
		c.until(fmt.Sprintf("that node %d leads", id), func() bool { return c.nodes[id].log.Status(data).Here })
		if due := <-c.nodes[id].led; due == 0 {
			t.Error("no term")
		}
		c.write(fmt.Sprint("under", id))
	}
	l := c.leading()
	c.must(l.log.Transfer(ctx, data, l.id)) // it does already
	is(t, l.log.Transfer(ctx, data, 9), fault.Conflict, "no_voter")
	is(t, c.nodes[2].log.Transfer(ctx, data, 3), fault.OwnershipLost, "not_leader")
	c.net.isolate(3, 1, 2)
	is(t, l.log.Transfer(ctx, data, 3), fault.OwnershipLost, "not_transferred")
	c.net.heal()
	c.write("after it")
	c.settled()
}

func TestAChangeOfMembersThatIsMadeAlreadyChangesNothing(t *testing.T) {
	c := newCluster(t, 3)
	l := c.leading()
	for _, ask := range []func() error{
		func() error { return l.log.AddLearner(ctx, data, 2) }, // a voter stays one
		func() error { return l.log.Promote(ctx, data, 2) },
		func() error { return l.log.Remove(ctx, data, 9) },
	} {
		c.must(ask())
	}
	p, err := l.log.Progress(ctx, data)
	c.must(err)
	for _, m := range p.Members {
		if m.Learner {
			t.Errorf("%+v lost its vote", m)
		}
	}
}

func TestALearnerGetsAVoteOnlyOnceItHasCaughtUp(t *testing.T) {
	c := newCluster(t, 1)
	l := c.leading()
	is(t, l.log.Promote(ctx, data, 2), fault.Conflict, "no_member")
	c.change(func(l *Log) error { return l.AddLearner(ctx, data, 2) }, data) // nobody is there yet
	is(t, l.log.Promote(ctx, data, 2), fault.Conflict, "not_caught_up")
	c.add(2, false)
	c.change(func(l *Log) error { return l.Promote(ctx, data, 2) }, data)
	c.net.isolate(2, 1)
	c.until("that the leader gives up", func() bool { return !l.log.Status(data).Here })
	c.net.heal()
	c.write("again")
}

func TestANodeIsNotRemovedWhereThoseLeftAreNoMajority(t *testing.T) {
	c := newCluster(t, 3)
	c.lead(c.nodes[1])
	l := c.nodes[1]
	is(t, l.log.Remove(ctx, data, 1), fault.Conflict, "leads")
	c.lose(c.nodes[3])
	c.until("that node 3 is missed", func() bool {
		p, err := l.log.Progress(ctx, data)
		c.must(err)
		return !p.Members[2].Active
	})
	is(t, l.log.Remove(ctx, data, 2), fault.Conflict, "majority") // 1 would be left with 3, which is down
	for shard := range uint16(2) {
		c.change(func(l *Log) error { return l.Remove(ctx, shard, 3) }, shard)
		c.change(func(l *Log) error { return l.Remove(ctx, shard, 2) }, shard)
	}
	c.lose(c.nodes[2])
	c.write("alone")
	delete(c.nodes, 2)
	delete(c.nodes, 3)
	c.join(c.add(4, false)) // a new node, under a new id
	c.write("together")
}

// A node that was removed and does not know it neither leads nor disturbs.
func TestANodeThatWasRemovedDoesNotDisturbTheOthers(t *testing.T) {
	c := newCluster(t, 3)
	c.lead(c.nodes[1])
	c.net.isolate(3, 1, 2)
	for shard := range uint16(2) {
		c.change(func(l *Log) error { return l.Remove(ctx, shard, 3) }, shard)
	}
	term := c.leading().log.Status(data).Term
	c.net.heal()
	gone := c.nodes[3]
	for i := range 40 {
		c.write(fmt.Sprint("w", i))
		pause(tick)
	}
	if got := c.leading().log.Status(data).Term; got != term {
		t.Errorf("the term went from %d to %d", term, got)
	}
	if _, err := gone.documents(); fault.CodeOf(err) != fault.OwnershipLost {
		t.Errorf("a node that was removed answered a read: %v", err)
	}
}

func TestACallerWhoLeavesIsToldWhatIsKnown(t *testing.T) {
	c := newCluster(t, 3)
	l := c.leading()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	c.net.isolate(l.id, 1, 2, 3)
	left := make(chan struct{})
	_, err := l.log.Propose(gone, data, c.put("left"), false, func() { close(left) })
	if code := fault.CodeOf(err); code != fault.UnknownWriteOutcome && code != fault.Cancelled {
		t.Errorf("Propose: %v", err)
	}
	if _, err := l.log.Progress(gone, data); err != nil && fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("Progress: %v", err)
	}
	c.net.heal()
	<-left
	c.settled()
}

// What was proposed and did not reach the others is answered as not happened once
// another entry has its place, and as unknown while nobody can know.
func TestTheFateOfAnEntryIsToldAsFarAsItIsKnown(t *testing.T) {
	c := newCluster(t, 3)
	old := c.leading()
	propose := func(id string) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := old.log.Propose(ctx, data, c.put(id), false, nil)
			done <- err
		}()
		return done
	}
	c.net.isolate(old.id, 1, 2, 3)
	lost := propose("lost")
	c.until("another leader", func() bool { l := c.leader(data); return l != nil && l != old })
	c.write("instead")
	c.net.heal()
	is(t, <-lost, fault.OwnershipLost, "entry_lost")
	c.settled()

	old = c.leading()
	c.net.isolate(old.id, 1, 2, 3)
	is(t, <-propose("open"), fault.UnknownWriteOutcome, "leader_lost")
	c.net.heal()
	c.write("more")
	c.settled()
}
