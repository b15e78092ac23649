package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyload/keyload/fault"
)

// writers store documents through whatever node they find leading, and remember which
// were acknowledged.
type writers struct {
	c    *cluster
	mu   sync.Mutex // also held while nodes go down: nobody is answered by a dead one
	acks map[string]bool
	lost map[string]bool // of which it was said that nothing had happened, ever since
	stop chan struct{}
	wait sync.WaitGroup
}

func (c *cluster) writers(n int) *writers {
	w := &writers{c: c, acks: map[string]bool{}, lost: map[string]bool{}, stop: make(chan struct{})}
	for i := range n {
		w.wait.Add(1)
		go w.run(i)
	}
	return w
}

func (w *writers) run(i int) {
	defer w.wait.Done()
	for n := 0; ; n++ {
		select {
		case <-w.stop:
			return
		default:
		}
		w.mu.Lock()
		var l *Log
		if leader := w.c.leader(data); leader != nil {
			l = leader.log
		}
		w.mu.Unlock()
		if l == nil {
			timer := time.NewTimer(tick)
			<-timer.C
			continue
		}
		id := fmt.Sprintf("w%02d-%06d", i, n)
		out, err := l.Propose(ctx, data, w.c.put(id), n%3 == 0, nil)
		w.mu.Lock()
		alive := slices.ContainsFunc([]uint64{1, 2, 3, 4}, func(id uint64) bool { n := w.c.nodes[id]; return n != nil && n.log == l })
		switch {
		case err == nil && out.Err == nil && alive:
			w.acks[id] = true
		case err == nil && out.Err != nil:
			w.c.t.Errorf("%s was rejected: %v", id, out.Err)
		case fault.CodeOf(err) == fault.OwnershipLost:
			w.lost[id] = true
		case fault.CodeOf(err) != fault.UnknownWriteOutcome && err != nil:
			w.c.t.Errorf("%s: %v", id, err)
		}
		w.mu.Unlock()
	}
}

// end stops the writers and makes sure that what was acknowledged is there on every
// node, and what was said not to have happened is not.
func (w *writers) end() {
	w.c.t.Helper()
	close(w.stop)
	w.wait.Wait()
	w.c.net.heal()
	for _, n := range w.c.nodes {
		if n.log == nil {
			w.c.must(n.open())
		}
	}
	w.c.write("the end")
	w.c.settled()
	for _, n := range w.c.nodes {
		ids, err := n.documents()
		w.c.must(err)
		there := map[string]bool{}
		for _, id := range ids {
			there[id] = true
		}
		for id := range w.acks {
			if !there[id] {
				w.c.t.Errorf("%s was acknowledged and is not at node %d", id, n.id)
			}
		}
		for id := range w.lost {
			if there[id] {
				w.c.t.Errorf("of %s it was said that nothing happened, and it is at node %d", id, n.id)
			}
		}
	}
	if len(w.acks) == 0 {
		w.c.t.Error("nothing was acknowledged: the test tests nothing")
	}
	w.c.t.Logf("%d acknowledged, %d said not to have happened", len(w.acks), len(w.lost))
}

// progress waits until so many more writes are acknowledged.
func (w *writers) progress(more int) {
	w.c.t.Helper()
	count := func() int { w.mu.Lock(); defer w.mu.Unlock(); return len(w.acks) }
	want := count() + more
	w.c.until("that writes go on", func() bool { return count() >= want })
}

func pause(d time.Duration) { timer := time.NewTimer(d); defer timer.Stop(); <-timer.C }

func TestNoAcknowledgedWriteIsLostWhateverTheNetworkDoes(t *testing.T) {
	c := newCluster(t, 3)
	w := c.writers(6)
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 8 {
		w.progress(20)
		switch round % 4 {
		case 0:
			c.net.worsen(10, 10, 2*tick)
		case 1:
			c.net.isolate(c.leading().id, 1, 2, 3)
		case 2: // it hears nothing, and is heard
			l := c.leading().id
			for id := uint64(1); id <= 3; id++ {
				c.net.sever(id, l)
			}
		case 3:
			c.net.sever(uint64(rng.IntN(3)+1), uint64(rng.IntN(3)+1))
			c.net.worsen(5, 30, tick)
		}
		pause(time.Duration(rng.IntN(30)) * tick)
		c.net.heal()
	}
	w.end()
}

func TestNoAcknowledgedWriteIsLostWhenNodesLosePower(t *testing.T) {
	c := newCluster(t, 3)
	w := c.writers(6)
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 8 {
		w.progress(20)
		down := []*node{c.nodes[uint64(rng.IntN(3)+1)]}
		if round%2 == 1 { // all of them at once
			down = []*node{c.nodes[1], c.nodes[2], c.nodes[3]}
		}
		w.mu.Lock()
		c.lose(down...)
		w.mu.Unlock()
		pause(time.Duration(rng.IntN(20)) * tick)
		w.mu.Lock()
		for _, n := range down {
			c.must(n.open())
		}
		w.mu.Unlock()
	}
	w.end()
}

// A leader that is cut off answers no read once another one may lead, and none that
// it answers is old.
func TestAReadShowsEverythingThatWasAcknowledgedBeforeIt(t *testing.T) {
	c := newCluster(t, 3)
	for round := range 6 {
		old := c.leading()
		id := fmt.Sprint("round", round)
		c.net.isolate(old.id, 1, 2, 3)
		answers := make(chan error, 8)
		for range cap(answers) { // asked while it still takes itself for the leader
			go func() {
				ids, err := old.documents()
				if err == nil && slices.Contains(ids, id) {
					err = errors.New("it shows what it cannot know")
				} else if err == nil {
					err = errors.New("it answered")
				}
				answers <- err
			}()
		}
		c.until("another leader", func() bool { l := c.leader(data); return l != nil && l != old })
		c.write(id)
		for range cap(answers) {
			is(t, <-answers, fault.OwnershipLost, "unconfirmed")
		}
		if _, err := old.documents(); fault.CodeOf(err) != fault.OwnershipLost {
			t.Errorf("a node that is cut off answered a read: %v", err)
		}
		c.net.heal()
		for _, n := range c.nodes { // followers too
			var ids []string
			c.until("a read", func() (ok bool) {
				var err error
				ids, err = n.documents()
				return err == nil
			})
			if !slices.Contains(ids, id) {
				t.Errorf("node %d does not show %s", n.id, id)
			}
		}
	}
}

// An answer that takes longer than it is waited for before it is asked for again is an
// answer still.
func TestReadersFarAwayGetAnAnswer(t *testing.T) {
	c := newCluster(t, 3)
	c.net.lengthen(roundTicks * tick * 6 / 10)
	defer c.net.heal()
	for _, n := range c.nodes {
		for range 3 {
			if _, err := n.documents(); err != nil {
				t.Errorf("node %d: %v", n.id, err)
			}
		}
	}
}

// Whoever reads sees at least what was acknowledged before, on any node, while
// leaders come and go.
func TestReadersNeverGoBack(t *testing.T) {
	c := newCluster(t, 3)
	w := c.writers(3)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for _, n := range c.nodes {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				w.mu.Lock()
				acked := make([]string, 0, len(w.acks))
				for id := range w.acks {
					acked = append(acked, id)
				}
				w.mu.Unlock()
				ids, err := n.documents()
				if err != nil {
					continue
				}
				there := map[string]bool{}
				for _, id := range ids {
					there[id] = true
				}
				for _, id := range acked {
					if !there[id] {
						t.Errorf("node %d does not show %s, which was acknowledged before", n.id, id)
						return
					}
				}
			}
		}()
	}
	for range 6 {
		w.progress(15)
		l := c.leading()
		c.net.isolate(l.id, 1, 2, 3)
		c.until("another leader", func() bool { n := c.leader(data); return n != nil && n != l })
		c.net.heal()
	}
	close(stop)
	readers.Wait()
	w.end()
}
