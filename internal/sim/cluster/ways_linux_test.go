package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// talkers are two processes that reach each other by ways only.
type talkers struct {
	t     *testing.T
	ways  *ways
	all   [2]*process
	named int
}

func newTalkers(t *testing.T) *talkers {
	self, err := os.Executable()
	ok(t, err)
	x := &talkers{t: t}
	x.ways = newWays(func() []int { return []int{x.all[0].cmd.Process.Pid, x.all[1].cmd.Process.Pid} })
	net := newNetwork()
	for i := range x.all {
		p, err := start(self, t.TempDir(), []string{childMode + "=talker"}, net.peer(i))
		ok(t, err)
		x.all[i] = p
		t.Cleanup(p.kill)
	}
	for i := range x.all {
		ok(t, x.ways.lead(net.way(i), i, net.peer(i)))
	}
	t.Cleanup(x.ways.close)
	return x
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// says is true once a log has a text; it is waited for a while.
func (x *talkers) says(i int, text string, while time.Duration) bool {
	for deadline := time.Now().Add(while); ; {
		if strings.Contains(x.all[i].log.String(), text) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		<-time.After(5 * time.Millisecond)
	}
}

// say lets one ask the other, and answers the word that it asked with.
func (x *talkers) say(from int, to string) string {
	x.named++
	word := fmt.Sprintf("w%d.", x.named)
	_, err := fmt.Fprintf(x.all[from].input, "%s %s\n", word, to)
	ok(x.t, err)
	return word
}

const (
	soon = 10 * time.Second
	// lasting is long enough to see that something does not come.
	lasting = 300 * time.Millisecond
)

func TestWhatIsCutInOneDirectionPassesInTheOther(t *testing.T) {
	x := newTalkers(t)
	net := newNetworkOf(x.ways)
	for from := range 2 {
		to := 1 - from
		word := x.say(from, net[to])
		if !x.says(from, "asked "+word+" "+word, soon) {
			t.Fatalf("nothing passes from %d: %s", from, x.all[from].log.String())
		}

		x.ways.cut(from, to)
		word = x.say(from, net[to])
		if x.says(to, "heard "+word, lasting) {
			t.Errorf("what %d says is heard though its way is cut", from)
		}
		x.ways.heal(from, to)
		if !x.says(from, "asked "+word+" "+word, soon) {
			t.Errorf("what was said while the way was cut is lost: %s", x.all[from].log.String())
		}

		x.ways.cut(to, from)
		word = x.say(from, net[to])
		if !x.says(to, "heard "+word, soon) {
			t.Errorf("nothing passes from %d though only the way back is cut", from)
		}
		if x.says(from, "asked "+word+" "+word, lasting) {
			t.Errorf("an answer passes to %d though the way back is cut", from)
		}
		x.ways.healAll()
		if !x.says(from, "asked "+word+" "+word, soon) {
			t.Errorf("the answer is lost: %s", x.all[from].log.String())
		}
	}
}

func TestAWayThatIsSlowDelaysWhatPasses(t *testing.T) {
	x := newTalkers(t)
	net := newNetworkOf(x.ways)
	x.says(0, x.say(0, net[1]), soon)
	x.ways.slow(1, 0, lasting)
	began := time.Now()
	word := x.say(0, net[1])
	if !x.says(0, "asked "+word+" "+word, soon) || time.Since(began) < lasting {
		t.Errorf("an answer took %v", time.Since(began))
	}
}

func TestNoConnectionIsMadeOverAWayThatIsCut(t *testing.T) {
	x := newTalkers(t)
	net := newNetworkOf(x.ways)
	x.ways.cut(0, 1)
	word := x.say(0, net[1])
	if x.says(1, "heard", lasting) {
		t.Error("a new connection passes a way that is cut")
	}
	x.ways.heal(0, 1)
	if !x.says(0, "asked "+word+" "+word, soon) {
		t.Errorf("%s", x.all[0].log.String())
	}
}

// newNetworkOf are the addresses of the ways.
func newNetworkOf(w *ways) (out []string) {
	for _, l := range w.listeners {
		out = append(out, l.Addr().String())
	}
	return out
}
