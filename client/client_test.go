package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/gateway/httpgw"
)

var (
	home  = api.PartitionRef{}
	lane  = api.LaneRef{Queue: "jobs"}
	forms = map[string][]client.Option{"session": nil, "two sessions": {client.Sessions(2)}, "plain HTTP": {client.HTTPOnly()}}
)

func put(id string, v any) api.Mutation { return client.Put("docs", id, v) }

func TestTypedCallsDoTheSameOverEveryConnectionAsEmbedded(t *testing.T) {
	b := newBed(t)
	doers := map[string]client.Calls{"embedded": b.db.Calls}
	for name, o := range forms {
		doers[name] = b.client(b.server.URL(), o...).Calls
	}
	for name, c := range doers {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			r, err := c.Commit(ctx, home, put(name, map[string]int{"n": 1}), client.Publish("news", client.Event("Added", 1)),
				client.Enqueue("jobs", client.Message(name)))
			check(t, err)
			if len(r.Results) != 3 || r.Receipt.CommandID == "" {
				t.Errorf("%+v", r)
			}
			doc, err := c.Get(ctx, home, "docs", name)
			check(t, err)
			want, err := b.db.Get(ctx, home, "docs", name)
			if err != nil || !reflect.DeepEqual(doc, want) {
				t.Errorf("%+v, %v; embedded %+v", doc, err, want)
			}
			o, err := c.Outcome(ctx, home, r.Receipt.CommandID)
			if name != "embedded" { // another principal has other commands
				if err != nil || o.Status != api.CommandCommitted || *o.Receipt != r.Receipt {
					t.Errorf("%+v, %v", o, err)
				}
			}
			got, err := c.Receive(ctx, &api.QueuesReceiveRequest{Lane: lane})
			if err != nil || len(got.Deliveries) != 1 || string(got.Deliveries[0].Payload) != `"`+name+`"` {
				t.Fatalf("%+v, %v", got, err)
			}
			done, err := c.Complete(ctx, lane, api.CompleteItem{Token: got.Deliveries[0].Token, Action: api.ActionAck})
			if err != nil || done.Results[0].State != api.StateAcked {
				t.Errorf("%+v, %v", done, err)
			}
			_, err = c.Get(ctx, home, "docs", "missing")
			_, wantErr := b.db.Get(ctx, home, "docs", "missing")
			if !reflect.DeepEqual(fault.From(err), fault.From(wantErr)) || fault.CodeOf(err) != fault.NotFound {
				t.Errorf("%+v, embedded %+v", err, wantErr)
			}
		})
	}
}

func TestALostAnswerIsSettledByTheSameCommand(t *testing.T) {
	b := newBed(t)
	for name, o := range forms {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, b.addr())
			c := b.client(n.url(), o...)
			if name != "plain HTTP" {
				n.after.Store(1) // the answer to the upgrade passes
			}
			n.lose.Store(3)
			r, err := c.Commit(t.Context(), home, put(name, map[string]int{"n": 1}), client.Enqueue("jobs", client.Message(name)))
			check(t, err)
			if n.lose.Load() > 0 {
				t.Errorf("%d answers were not lost", n.lose.Load())
			}
			doc, err := b.db.Get(t.Context(), home, "docs", name)
			if err != nil || doc.Revision != 1 || r.Results[0].Revision != 1 {
				t.Errorf("committed %d times, %v", doc.Revision, err)
			}
		})
	}
	status, err := b.db.QueueStatus(t.Context(), lane)
	if err != nil || status.Totals.Enqueued != int64(len(forms)) {
		t.Errorf("%+v, %v", status, err)
	}
}

func TestRetriesThatEndOnALostAnswerSayThatNobodyKnows(t *testing.T) {
	b := newBed(t)
	for name, o := range forms {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, b.addr())
			if name != "plain HTTP" {
				n.after.Store(1)
			}
			n.lose.Store(1 << 30)
			c := b.client(n.url(), append(o, client.Attempts(3))...)
			_, err := c.Commit(t.Context(), home, put(name, map[string]int{"n": 1}))
			f := fault.From(err)
			if f == nil || f.Code != fault.UnknownWriteOutcome || f.Retry != fault.RetrySameID || f.CommandID == "" || f.Recorded {
				t.Fatalf("%+v", err)
			}
			n.lose.Store(0)
			n.after.Store(0)
			settled, err := c.Outcome(t.Context(), home, f.CommandID)
			if err != nil || settled.Status != api.CommandCommitted {
				t.Errorf("%+v, %v", settled, err)
			}
			again, err := c.CommitAs(t.Context(), f.CommandID, home, put(name, map[string]int{"n": 1}))
			if err != nil || again.Receipt != *settled.Receipt {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
}

func TestARefusalAfterALostAnswerDoesNotHideThatTheWriteMayHaveHappened(t *testing.T) {
	b := newBed(t)
	n := newNetwork(t, b.addr())
	n.after.Store(1)
	n.lose.Store(1)
	n.downNext.Store(true)
	c := b.client(n.url(), client.Attempts(4))
	_, err := c.Commit(t.Context(), home, put("a", map[string]int{"n": 1}))
	f := fault.From(err)
	if f == nil || f.Code != fault.UnknownWriteOutcome || f.CommandID == "" || f.Facts["lastCode"] != string(fault.OwnershipLost) {
		t.Errorf("%+v", f)
	}
	if _, got := b.db.Get(t.Context(), home, "docs", "a"); got != nil {
		t.Errorf("the write did not happen: %v", got)
	}
}

func TestACallThatWasNeverSentIsNotInDoubt(t *testing.T) {
	b := newBed(t)
	n := newNetwork(t, b.addr())
	check(t, n.listener.Close())
	for name, o := range forms {
		c := b.client(n.url(), append(o, client.Attempts(2))...)
		_, err := c.Commit(t.Context(), home, put("a", 1))
		f := fault.From(err)
		if f == nil || f.Code != fault.OwnershipLost || f.Reason != "unreachable" || f.Retry != fault.RetrySameID {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = c.Commit(ctx, home, put("a", 1))
		if fault.CodeOf(err) != fault.Cancelled || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACallThatIsCancelledEndsSoonAndClaimsNothing(t *testing.T) {
	b := newBed(t)
	for name, o := range forms {
		t.Run(name, func(t *testing.T) {
			c := b.client(b.server.URL(), o...)
			_, err := c.QueueStatus(t.Context(), lane) // connects
			check(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err = c.Receive(ctx, &api.QueuesReceiveRequest{Lane: lane, WaitMillis: 20_000})
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			code := fault.CodeOf(err)
			if !errors.Is(err, context.DeadlineExceeded) || code != fault.Cancelled && code != fault.UnknownWriteOutcome {
				t.Errorf("%v", err)
			}
			if name == "session" && code != fault.Cancelled {
				t.Errorf("the server was asked, and its verdict is lost: %v", err)
			}
			// A command's outcome settles it; nothing was claimed.
			status, err := b.db.QueueStatus(t.Context(), lane)
			if err != nil || status.Counts.Leased != 0 {
				t.Errorf("%+v, %v", status, err)
			}
		})
	}
}

func TestPlainHTTPIsUsedWhereSomethingRefusesTheUpgrade(t *testing.T) {
	b := newBed(t)
	target, err := url.Parse(b.server.URL())
	check(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{}
	proxy.Transport = transport
	asked := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/session" {
			asked++
			http.Error(w, "no upgrades here", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer transport.CloseIdleConnections()
	defer front.Close()
	c := b.client(front.URL)
	for range 3 {
		_, err := c.Commit(t.Context(), home, put("a", map[string]int{"n": 1}))
		check(t, err)
	}
	if asked != 1 {
		t.Errorf("a session was asked for %d times", asked)
	}
	check(t, c.Close())
}

func TestAWrongKeyIsRefusedAndNotRetried(t *testing.T) {
	b := newBed(t)
	n := newNetwork(t, b.addr())
	for name, o := range forms {
		before := n.accepted.Load()
		c := client.New(n.url(), "kl_nobody_secret", o...)
		_, err := c.QueueStatus(t.Context(), lane)
		if fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
		if got := n.accepted.Load() - before; got != 1 {
			t.Errorf("%s: %d connections", name, got)
		}
		check(t, c.Close())
	}
}

func TestSomethingElseAtTheURLIsNamed(t *testing.T) {
	front := httptest.NewServer(http.NotFoundHandler())
	defer front.Close()
	c := client.New(front.URL, "kl_a_b")
	_, err := c.Status(t.Context())
	if f := fault.From(err); f == nil || f.Code != fault.UnsupportedCapability || f.Reason != "foreign_answer" {
		t.Errorf("%v", err)
	}
	check(t, c.Close())
	for _, bad := range []string{"", "127.0.0.1:7600", "ftp://x", "http://"} {
		c := client.New(bad, "kl_a_b")
		if _, err := c.Status(t.Context()); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%q: %v", bad, err)
		}
		check(t, c.Close())
	}
}

func TestCallsGoOnAfterTheServerIsRestarted(t *testing.T) {
	b := newBed(t)
	addr := b.addr()
	c := b.client(b.server.URL())
	_, err := c.Commit(t.Context(), home, put("a", map[string]int{"n": 1}))
	check(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := c.ReadEvents(t.Context(), &api.EventsReadRequest{Source: api.SourceRef{Resource: "news"}, WaitMillis: 20_000})
		waiting <- err
	}()
	b.shutdown()
	b.serve(addr)
	_, err = c.Commit(t.Context(), home, put("a", map[string]int{"n": 2}), client.Publish("news", client.Event("Added", 1)))
	check(t, err)
	if err := <-waiting; err != nil { // was asked for again at the new server
		t.Error(err)
	}
}

func TestManyCallsShareOneConnection(t *testing.T) {
	b := newBed(t)
	n := newNetwork(t, b.addr())
	c := b.client(n.url())
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 20 {
				id := fmt.Sprintf("%d-%d", i, j)
				if _, err := c.Commit(t.Context(), home, put(id, map[string]string{"id": id})); err != nil {
					t.Error(err)
					return
				}
				doc, err := c.Get(t.Context(), home, "docs", id)
				if err != nil || string(doc.Document) != `{"id":"`+id+`"}` {
					t.Errorf("%s: %+v, %v", id, doc, err)
				}
			}
		})
	}
	wg.Wait()
	if got := n.accepted.Load(); got != 1 {
		t.Errorf("%d connections", got)
	}
}

func TestCallsAboveTheSessionsBoundWaitForTheirTurn(t *testing.T) {
	b := newBed(t, func(o *httpgw.Options) { o.SessionCalls = 2 })
	c := b.client(b.server.URL(), client.Attempts(1))
	var wg sync.WaitGroup
	for range 7 {
		wg.Go(func() {
			_, err := c.Receive(t.Context(), &api.QueuesReceiveRequest{Lane: lane, WaitMillis: 30})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestCloseEndsCallsInFlightAndRefusesNewOnes(t *testing.T) {
	b := newBed(t)
	for name, o := range forms {
		c := client.New(b.server.URL(), b.key, o...)
		_, err := c.QueueStatus(t.Context(), lane)
		check(t, err)
		ended := make(chan error, 1)
		before := b.inFlight()
		go func() {
			_, err := c.Receive(t.Context(), &api.QueuesReceiveRequest{Lane: lane, WaitMillis: 20_000})
			ended <- err
		}()
		for b.inFlight() == before {
			runtime.Gosched()
		}
		check(t, c.Close())
		check(t, c.Close())
		if err := <-ended; fault.CodeOf(err) != fault.UnknownWriteOutcome {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.QueueStatus(t.Context(), lane); fault.From(err) == nil || fault.From(err).Reason != "client_closed" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSessionsRunOverTLSAlsoWhereTheServerSpeaksHTTP2(t *testing.T) {
	b := newBed(t)
	g, err := httpgw.New(httpgw.Options{Door: b.db.Engine()})
	check(t, err)
	front := httptest.NewUnstartedServer(g)
	front.EnableHTTP2 = true
	front.Config.ErrorLog = log.New(io.Discard, "", 0) // of the stranger below
	front.StartTLS()
	defer front.Close()
	trust := &tls.Config{RootCAs: front.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	for name, o := range forms {
		c := client.New(front.URL, b.key, append(o, client.TLS(trust))...)
		_, err := c.Commit(t.Context(), home, put(name, map[string]int{"n": 1}))
		check(t, err)
		if got := client.Connected(c); (got == 1) != (name != "plain HTTP") {
			t.Errorf("%s: %d sessions", name, got)
		}
		check(t, c.Close())
	}
	stranger := client.New(front.URL, b.key, client.Attempts(1))
	if _, err := stranger.Status(t.Context()); fault.CodeOf(err) != fault.OwnershipLost {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
	check(t, stranger.Close())
	front.Client().CloseIdleConnections()
}
