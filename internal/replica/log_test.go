package replica

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keyload/keyload/fault"
)

func TestOneNodeAloneIsACluster(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[1]
	c.write("a")
	st := n.log.Status(data)
	if !st.Here || st.Leader != 1 || st.Term < 2 || st.Epoch != st.Term || st.Position != 2 {
		t.Errorf("status %+v", st)
	}
	if got := <-n.led; got != st.Term {
		t.Errorf("it was told to lead in term %d", got)
	}
	for range 3 {
		c.lose(n)
		c.must(n.open())
		c.leading()
		if got, err := n.documents(); err != nil || !slices.Contains(got, "a") {
			t.Fatalf("after a power loss there are %v, %v", got, err)
		}
		if again := n.log.Status(data).Term; again <= st.Term {
			t.Errorf("the term went from %d to %d", st.Term, again)
		}
		st = n.log.Status(data)
	}
}

func TestNodesThatJoinHaveTheStateAndGoOnWithIt(t *testing.T) {
	c := newCluster(t, 1)
	for i := range 20 {
		c.write(fmt.Sprint("before", i))
	}
	c.join(c.add(2, false))
	c.join(c.add(3, false))
	c.write("after")
	c.settled()
	for id, n := range c.nodes {
		if got, err := n.documents(); err != nil || len(got) != 21 {
			t.Errorf("node %d sees %d documents, %v", id, len(got), err)
		}
		p, err := n.log.Progress(ctx, data)
		if err != nil || len(p.Members) != 3 {
			t.Errorf("node %d knows %+v, %v", id, p, err)
		}
	}
}

func TestOnlyTheLeaderTakesCommandsAndKnowsWhatIsDue(t *testing.T) {
	c := newCluster(t, 3)
	l := c.leading()
	for _, n := range c.nodes {
		if n == l {
			continue
		}
		left := 0
		_, err := n.log.Propose(ctx, data, c.put("x"), false, func() { left++ })
		is(t, err, fault.OwnershipLost, "not_leader")
		if left != 1 {
			t.Errorf("left was called %d times", left)
		}
		is(t, n.log.AddLearner(ctx, data, 9), fault.OwnershipLost, "not_leader")
		if due, _ := n.log.NextDue(data); due != 0 {
			t.Errorf("node %d has something due at %d", n.id, due)
		}
	}
}
