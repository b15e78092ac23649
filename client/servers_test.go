package client_test

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

// nodes are servers over one store, as the nodes of a cluster are.
type nodes struct {
	*bed
	others []*bed // with the store and the key of the first
}

func newNodes(t *testing.T, n int) *nodes {
	all := &nodes{bed: newBed(t)}
	for range n - 1 {
		b := &bed{t: t, db: all.db, key: all.key}
		b.serve("127.0.0.1:0")
		t.Cleanup(b.shutdown)
		all.others = append(all.others, b)
	}
	return all
}

// urls is the list of all of them, the first one by the given way.
func (n *nodes) urls(first string) string {
	list := []string{first}
	for _, b := range n.others {
		list = append(list, b.server.URL())
	}
	return strings.Join(list, ",")
}

// answered is how many calls of an operation a server has answered, well or not.
func (b *bed) answered(o *api.Operation) (n float64) {
	families, err := b.gauges.Gather()
	check(b.t, err)
	for _, f := range families {
		if f.GetName() != "keyload_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "operation" && l.GetValue() == o.Name {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

var commit = api.CommandsCommit.Operation

func TestCallsStayOnOneServerUntilItIsGoneAndThenOnTheNext(t *testing.T) {
	for name, o := range forms {
		t.Run(name, func(t *testing.T) {
			n := newNodes(t, 3)
			first, second, third := n.bed, n.others[0], n.others[1]
			c := n.client(n.urls(first.server.URL()), o...)
			puts := func(count int) {
				t.Helper()
				for range count {
					_, err := c.Commit(t.Context(), home, put("a", map[string]int{"n": 1}))
					check(t, err)
				}
			}
			puts(20)
			if a, b := first.answered(commit), second.answered(commit)+third.answered(commit); a != 20 || b != 0 {
				t.Errorf("the first server answered %v calls, the others %v", a, b)
			}
			addr := first.addr()
			first.shutdown()
			puts(5)
			first.serve(addr)
			puts(5)
			if a, b, z := first.answered(commit), second.answered(commit), third.answered(commit); a != 0 || b != 10 || z != 0 {
				t.Errorf("after the first server had gone they answered %v, %v and %v calls", a, b, z)
			}
			second.shutdown()
			third.shutdown()
			puts(5)
			if got := first.answered(commit); got != 5 {
				t.Errorf("the server that came back answered %v calls", got)
			}
			doc, err := n.db.Get(t.Context(), home, "docs", "a")
			if err != nil || doc.Revision != 35 {
				t.Errorf("35 calls left revision %d, %v", doc.Revision, err)
			}
		})
	}
}

func TestACallWhoseAnswerWasLostIsSettledOnAnotherServer(t *testing.T) {
	for name, o := range forms {
		t.Run(name, func(t *testing.T) {
			n := newNodes(t, 2)
			way := newNetwork(t, n.addr())
			if name != "plain HTTP" {
				way.after.Store(1)
			}
			way.lose.Store(1)
			way.downNext.Store(true)
			c := n.client(n.urls(way.url()), o...)
			r, err := c.Commit(t.Context(), home, put("a", map[string]int{"n": 1}), client.Enqueue("jobs", client.Message(1)))
			check(t, err)
			status, err := n.db.QueueStatus(t.Context(), lane)
			check(t, err)
			if r.Results[0].Revision != 1 || status.Totals.Enqueued != 1 || n.others[0].answered(commit) != 1 {
				t.Errorf("%+v, %d enqueued, the other server answered %v calls", r, status.Totals.Enqueued, n.others[0].answered(commit))
			}
		})
	}
}

// A server that answers OwnershipLost, or takes connections and says nothing, is
// passed over; a refusal is an answer and is not asked for again.
func TestWhoHasNoAnswerIsPassedOverAndARefusalIsAnAnswer(t *testing.T) {
	n := newNodes(t, 2)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	shut := memoryServer(t)
	c := n.client(strings.Join([]string{shut, "http://" + silent.Addr().String(), n.server.URL(), n.others[0].server.URL()}, " , "))
	began := time.Now()
	_, err = c.Commit(t.Context(), home, put("a", map[string]int{"n": 1}))
	check(t, err)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v to pass over a server that says nothing", took)
	}
	for range 3 {
		_, err = c.Commit(t.Context(), home, client.PutAt("docs", "a", 7, 1))
		if fault.CodeOf(err) != fault.Validation && fault.CodeOf(err) != fault.RevisionConflict {
			t.Errorf("%v", err)
		}
	}
	if a, b := n.answered(commit), n.others[0].answered(commit); a != 4 || b != 0 {
		t.Errorf("the servers answered %v and %v calls", a, b)
	}
}

// memoryServer is the URL of a server whose store is closed: it answers every call
// with OwnershipLost.
func memoryServer(t *testing.T) string {
	b := newBed(t)
	check(t, b.db.Close())
	return b.server.URL()
}

func TestWhereNoServerIsLeftTheCallSaysWhetherItWasSent(t *testing.T) {
	n := newNodes(t, 2)
	way := newNetwork(t, n.addr())
	way.after.Store(1)
	way.lose.Store(1)
	way.downNext.Store(true)
	urls := n.urls(way.url())
	n.others[0].shutdown()
	c := n.client(urls, client.Attempts(2))
	_, err := c.Commit(t.Context(), home, put("a", map[string]int{"n": 1}))
	if f := fault.From(err); f == nil || f.Code != fault.UnknownWriteOutcome || f.CommandID == "" {
		t.Errorf("sent once, then no server was left: %v", err)
	}
	_, err = c.Commit(t.Context(), home, put("a", map[string]int{"n": 1}))
	if f := fault.From(err); f == nil || f.Code != fault.OwnershipLost || f.Reason != "unreachable" {
		t.Errorf("never sent: %v", err)
	}
	for _, urls := range []string{"", ",", "http://127.0.0.1:1,ftp://127.0.0.1:2", "http://127.0.0.1:1 http://127.0.0.1:2"} {
		c := n.client(urls)
		if _, err := c.Commit(t.Context(), home, put("a", 1)); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%q: %v", urls, err)
		}
		if _, err := c.Backup(t.Context(), nil); fault.CodeOf(err) != fault.Validation {
			t.Errorf("backup at %q: %v", urls, err)
		}
	}
}

// Many callers go on while servers come and go, and every effect is there once.
func TestServersThatComeAndGoLoseNothingAndRepeatNothing(t *testing.T) {
	n := newNodes(t, 2)
	all := append([]*bed{n.bed}, n.others...)
	c := n.client(n.urls(n.server.URL()))
	const callers, each = 8, 40
	var done sync.WaitGroup
	errs := make(chan error, callers)
	for range callers {
		done.Go(func() {
			for range each {
				if _, err := c.Commit(t.Context(), home, client.Enqueue("jobs", client.Message(1))); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { done.Wait(); close(over) }()
	for i := 0; ; i++ {
		b := all[i%len(all)]
		addr := b.addr()
		b.shutdown()
		b.serve(addr)
		select {
		case <-over:
		case <-t.Context().Done():
		default:
			continue
		}
		break
	}
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	status, err := n.db.QueueStatus(t.Context(), lane)
	if err != nil || status.Totals.Enqueued != callers*each {
		t.Errorf("%d were enqueued, want %d, %v", status.Totals.Enqueued, callers*each, err)
	}
}
