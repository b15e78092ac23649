package replica

import (
	"fmt"
	"sync"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/machine"
)

// enqueue is a command whose message is due later.
func (c *cluster) enqueue(notBefore int64) machine.Command {
	priority := 4
	return c.command(api.CommandsCommit.Operation, &api.CommandsCommitRequest{Partition: place, Mutations: []api.Mutation{
		{Enqueue: &api.Enqueue{Queue: "work", Message: api.Message{Payload: api.JSON("1"), NotBefore: api.Time(notBefore), Priority: &priority}, IfExists: api.IfExistsFail}},
	}})
}

// What is due is known on the leader, also on one that has just become it, and is told
// to who waits.
func TestANewLeaderIsToldWhatIsDue(t *testing.T) {
	c := newCluster(t, 3)
	c.lead(c.nodes[1])
	when := began + 1_000_000
	_, changed := c.nodes[1].log.NextDue(data)
	for len(changed) > 0 {
		<-changed
	}
	c.accepted(c.nodes[1].log.Propose(ctx, data, c.enqueue(when), false, nil))
	<-changed
	if due, _ := c.nodes[1].log.NextDue(data); due != when {
		t.Errorf("due at %d, want %d", due, when)
	}
	c.settled()
	due, other := c.nodes[2].log.NextDue(data)
	if due != 0 {
		t.Errorf("a follower has something due at %d", due)
	}
	for len(other) > 0 {
		<-other
	}
	c.must(c.nodes[1].log.Transfer(ctx, data, 2))
	<-other
	if due, _ := c.nodes[2].log.NextDue(data); due != when {
		t.Errorf("due at %d, want %d", due, when)
	}
	c.accepted(c.nodes[2].log.Propose(ctx, data, c.enqueue(0), false, nil))
	for _, n := range c.nodes { // a receiver may wait on any
		c.until("a hint", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return len(n.hints) > 0 })
	}
}

// While the entries in flight are held up, what comes joins the next one: urgent
// commands first.
func TestCommandsThatWaitAreJoinedUrgentOnesFirst(t *testing.T) {
	c := newCluster(t, 1)
	n := c.leading()
	s := n.log.shards[data]
	held, release := make(chan struct{}), make(chan struct{})
	n.log.host.in.call(func(*loop) { close(held); <-release })
	<-held
	var wait sync.WaitGroup
	var mu sync.Mutex
	at := map[string]uint64{}
	propose := func(id string, urgent bool) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			out, err := n.log.Propose(ctx, data, c.put(id), urgent, nil)
			if err != nil || out.Err != nil {
				t.Errorf("%s: %v %v", id, err, out.Err)
			}
			mu.Lock()
			defer mu.Unlock()
			at[id] = out.Position
		}()
	}
	for i := range entriesInFlight { // each becomes an entry of its own
		propose(fmt.Sprint("first", i), false)
		c.until("an entry in flight", func() bool { s.proposals.mu.Lock(); defer s.proposals.mu.Unlock(); return len(s.proposals.byID) == i+1 })
	}
	for i := range 10 {
		propose(fmt.Sprint("plain", i), false)
	}
	c.until("that they wait", func() bool { return len(s.proposals.queue) == 10 })
	propose("urgent", true)
	c.until("that it waits", func() bool { return len(s.proposals.urgent) == 1 })
	before := n.log.Status(data).Entries
	close(release)
	wait.Wait()
	earlier := 0 // the first of an entry is whatever came by
	for i := range 10 {
		if at["urgent"] > at[fmt.Sprint("plain", i)] {
			earlier++
		}
	}
	if earlier > 1 {
		t.Errorf("an urgent command came after %d plain ones: %v", earlier, at)
	}
	if got := n.log.Status(data).Entries - before; got > entriesInFlight+2 {
		t.Errorf("19 commands took %d entries", got)
	}
}

func TestAnEntryEndsAtItsBounds(t *testing.T) {
	full := func(commands, size int) *proposals {
		p := newProposals(&shard{})
		for range commands {
			p.queue <- proposal{cmd: machine.Command{Request: make([]byte, size)}}
		}
		return p
	}
	one := proposal{cmd: machine.Command{Request: make([]byte, 1)}}
	for _, c := range []struct{ commands, size, want int }{
		{entryCommands - 2, 1, entryCommands - 1}, {entryCommands - 1, 1, entryCommands}, {entryCommands, 1, entryCommands},
		{4, entryBytes / 2, 3}, {4, entryBytes - 2, 3}, {4, entryBytes - 1, 2}, {4, 8 << 20, 2},
	} {
		if got := len(full(c.commands, c.size).gather(one)); got != c.want {
			t.Errorf("of %d commands with %d bytes each %d are joined, want %d", c.commands+1, c.size, got, c.want)
		}
	}
}

func TestACommandTooLargeForAMessageIsRefused(t *testing.T) {
	c := newCluster(t, 1)
	n := c.leading()
	encoded, err := (&machine.Entry{Commands: []machine.Command{{Request: make([]byte, 1<<20)}}}).Encode()
	c.must(err)
	most := MessageBytes - messageRoom - (len(encoded) - 1<<20)
	for _, size := range []int{most - 1, most, most + 1} {
		encoded, err := (&machine.Entry{Commands: []machine.Command{{Request: make([]byte, size)}}}).Encode()
		if err != nil || fits(encoded) != (size <= most) {
			t.Errorf("%d bytes fit: %v, %v", size, fits(encoded), err)
		}
	}
	_, err = n.log.Propose(ctx, data, machine.Command{Op: api.CommandsCommit.Number, Request: make([]byte, most+1)}, false, nil)
	is(t, err, fault.ResourceExhausted, "entry_too_large")
	c.write("after it")
}

func TestWhatIsOnItsWayWhenALogClosesIsAnswered(t *testing.T) {
	c := newCluster(t, 3)
	n := c.leading()
	c.net.isolate(n.id, 1, 2, 3)
	answers := make(chan error, 30)
	var left sync.WaitGroup
	for i := range cap(answers) / 2 {
		left.Add(1)
		go func() {
			_, err := n.log.Propose(ctx, data, c.put(fmt.Sprint("p", i)), i%2 == 0, left.Done)
			answers <- err
		}()
		go func() { _, err := n.documents(); answers <- err }()
	}
	s := n.log.shards[data]
	c.until("an entry in flight", func() bool { s.proposals.mu.Lock(); defer s.proposals.mu.Unlock(); return len(s.proposals.byID) > 0 })
	closed := n.log
	n.close()
	for range cap(answers) {
		err := <-answers
		if code := fault.CodeOf(err); code != fault.UnknownWriteOutcome && code != fault.OwnershipLost {
			t.Errorf("got %v", err)
		}
	}
	left.Wait()
	_, err := closed.Propose(ctx, data, c.put("later"), false, nil)
	is(t, err, fault.UnknownWriteOutcome, "store_closed")
	if err := closed.Read(ctx, data, nil); fault.CodeOf(err) != fault.OwnershipLost {
		t.Errorf("a read of a closed log: %v", err)
	}
	closed.Receive(2, data, []byte{ofRaft}) // what comes late is dropped
	closed.Unreachable(2)
	if _, err := closed.Progress(ctx, data); fault.CodeOf(err) != fault.OwnershipLost {
		t.Errorf("members of a closed log: %v", err)
	}
	c.must(n.open())
}
