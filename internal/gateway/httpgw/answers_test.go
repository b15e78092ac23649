package httpgw_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/limits"
)

// now is a context that waits for nothing.
func now() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAnswersAreBoundedForEachTenantAndAltogether(t *testing.T) {
	const max = 100
	for _, c := range []struct {
		who     string
		held    map[string]int
		bytes   int
		reserve int
		fits    bool
	}{
		{"a", nil, 50, 0, true},
		{"a", nil, 51, 0, true}, // who holds nothing is not kept out by its own size
		{"a", map[string]int{"a": 20}, 29, 0, true},
		{"a", map[string]int{"a": 20}, 30, 0, true},
		{"a", map[string]int{"a": 20}, 31, 0, false},
		{"b", map[string]int{"a": 60}, 39, 0, true},
		{"b", map[string]int{"a": 60}, 40, 0, true},
		{"b", map[string]int{"a": 60}, 41, 0, false},
		{"a", map[string]int{"a": 50, "b": 50}, 9, 10, true},
		{"a", map[string]int{"a": 50, "b": 50}, 10, 10, true},
		{"a", map[string]int{"a": 50, "b": 50}, 11, 10, false},
	} {
		holding := func() (*httpgw.Answers, int) {
			a, held := httpgw.NewAnswers(max), 0
			for who, n := range c.held {
				a.Give(who, -n)
				held += n
			}
			return a, held
		}
		a, held := holding()
		if a.More(c.who, c.bytes, c.reserve) != c.fits {
			t.Errorf("%+v", c)
		}
		if c.fits {
			held += c.bytes
		}
		if a.Held() != held {
			t.Errorf("%+v: %d bytes are held, want %d", c, a.Held(), held)
		}
		if c.reserve > 0 {
			continue
		}
		if a, _ = holding(); (a.Take(now(), c.who, c.bytes) == nil) != c.fits {
			t.Errorf("%+v, waiting", c)
		}
	}
}

func TestWhoWaitsForRoomComesInTurnAndWhoLeavesHoldsNothing(t *testing.T) {
	a := httpgw.NewAnswers(100)
	a.Give("a", -50)
	came := make(chan string, 10)
	wait := func(ctx context.Context, name, tenant string, n, behind int) chan error {
		out := make(chan error, 1)
		go func() {
			err := a.Take(ctx, tenant, n)
			came <- fmt.Sprint(name, " ", err == nil)
			out <- err
		}()
		for a.Waiting(tenant) <= behind {
			runtime.Gosched()
		}
		return out
	}
	is := func(want string) {
		t.Helper()
		if got := <-came; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	first := wait(ctx, "first", "a", 40, 0)
	wait(t.Context(), "second", "a", 10, 1)
	wait(t.Context(), "third", "a", 30, 2)
	if err := a.Take(now(), "b", 50); err != nil {
		t.Errorf("another tenant waits behind them: %v", err)
	}
	a.Give("a", 10) // enough for the second, who is not in front
	if len(came) != 0 {
		t.Error("somebody was let past")
	}
	leave()
	is("first false")
	is("second true")
	if err := <-first; err != context.Canceled {
		t.Errorf("%v", err)
	}
	a.Give("a", 30)
	is("third true")
	if a.Held() != 50-10+10-30+30+50 {
		t.Errorf("%d bytes are held", a.Held())
	}
}

func TestASlowCallerMayTakeLongerTheMoreItReads(t *testing.T) {
	for bytes, want := range map[int]time.Duration{0: 30 * time.Second, 128<<10 - 1: 30 * time.Second, 128 << 10: 31 * time.Second, 8 << 20: 94 * time.Second} {
		if got := httpgw.ReadingTime(bytes); got != want {
			t.Errorf("%d bytes: %v, want %v", bytes, got, want)
		}
	}
}

// stuck is a caller over HTTP that reads nothing until it is let.
type stuck struct {
	*httptest.ResponseRecorder
	writing chan struct{} // closed when its answer is being written
	read    chan struct{} // closed when it reads
}

func (s *stuck) Write(p []byte) (int, error) {
	close(s.writing)
	<-s.read
	return s.ResponseRecorder.Write(p)
}

// large publishes events of a megabyte each.
func (b *bed) large(n int) {
	b.t.Helper()
	payload := strings.Repeat("x", limits.PayloadBytes-2)
	for i := range n {
		_, err := b.db.Commit(b.t.Context(), api.PartitionRef{}, keyload.Publish("news", api.Event{EventID: fmt.Sprint("e", i), Type: "t", Payload: api.Of(payload)}))
		check(b.t, err)
	}
}

const readNews = `{"source":{"resource":"news","kind":"topic"}}`

func (b *bed) answerBytes() string {
	got := string(b.send(http.MethodGet, "/metrics", nil).body)
	_, rest, _ := strings.Cut(got, "\nkeyload_answer_bytes ")
	n, _, _ := strings.Cut(rest, "\n")
	return n
}

// Two callers read nothing of a megabyte each, which is the share of a tenant. A third
// one is refused and nothing is read for it; small answers, and other tenants, go on.
func TestCallersThatReadNothingKeepOutOnlyLargeAnswersOfTheirTenant(t *testing.T) {
	b := newBed(t, func(o *httpgw.Options) { o.AnswersBytes = 4*limits.PayloadBytes + 4096 })
	b.large(1)
	other := b.otherTenant()
	var all []*stuck
	var done []chan struct{}
	for range 2 {
		s := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/events/read", strings.NewReader(readNews))
		r.Header.Set("Authorization", "Bearer "+b.key)
		ended := make(chan struct{})
		go func() { b.gateway.ServeHTTP(s, r); close(ended) }()
		<-s.writing
		all, done = append(all, s), append(done, ended)
	}
	began := time.Now()
	refused := b.post("/v1/events/read", readNews)
	if p := refused.problem(t); p.Status != 429 || p.Reason != "answers" || p.Retry != "same_id" || p.RetryAfterMillis == 0 || !strings.Contains(p.Detail, "nothing was read") {
		t.Errorf("%+v", p)
	}
	if took := time.Since(began); took < limits.AnswersWaitMillis*time.Millisecond {
		t.Errorf("it was refused after %v", took)
	}
	for what, a := range map[string]answer{
		"a small query": b.post("/v1/queues/status", `{"lane":{"queue":"jobs"}}`),
		"a command":     b.post("/v1/commands/commit", `{"commandId":"`+api.NewCommandID()+`","mutations":[{"kind":"enqueue","queue":"jobs","message":{"payload":1}}]}`),
	} {
		if a.status != 200 {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if a := b.post("/v1/events/read", `{"source":{"partition":{"tenant":"other"},"resource":"news","kind":"topic"}}`, "Authorization", "Bearer "+other); a.status == 429 {
		t.Errorf("another tenant: %d %s", a.status, a.body)
	}
	across := func() api.LaneOutcome {
		a := b.post("/v1/queues/receive-across-lanes", `{"requestId":"`+api.NewCommandID()+`","requests":[{"requestId":"`+api.NewCommandID()+`","lane":{"queue":"jobs"}}]}`)
		var got api.QueuesReceiveAcrossLanesResponse
		check(t, json.Unmarshal(a.body, &got))
		return got.Outcomes[0]
	}
	if o := across(); o.Status != api.PartRejected || o.Error.Reason != "answers" {
		t.Errorf("a part of a composite without room: %+v", o)
	}
	for i, s := range all {
		close(s.read)
		<-done[i]
		if s.Code != 200 || s.Body.Len() < limits.PayloadBytes {
			t.Errorf("a slow one got %d with %d bytes", s.Code, s.Body.Len())
		}
	}
	if a := b.post("/v1/events/read", readNews); a.status != 200 {
		t.Errorf("with room again: %d %s", a.status, a.body)
	}
	if o := across(); o.Status != api.PartCommitted || len(o.Result.Deliveries) != 1 {
		t.Errorf("a part of a composite with room again: %+v", o)
	}
	if n := b.answerBytes(); n != "0" {
		t.Errorf("%s bytes are held still", n)
	}
}

// A client asks for much more than a session holds and reads nothing. What is read for
// it is bounded, nothing is refused, and when it reads it gets every answer.
func TestASessionWhoseClientReadsNothingMakesOnlyItselfWait(t *testing.T) {
	b := newBed(t)
	b.large(1)
	near, far := net.Pipe() // has no buffer
	go b.gateway.ServeSession(near, b.key)
	p := &peer{t, far, bufio.NewReader(far)}
	_, err := http.ReadResponse(p.in, nil)
	check(t, err)
	const calls = 3 * limits.SessionAnswersBytes / limits.PayloadBytes
	for id := range uint32(calls) {
		p.call(id+1, api.EventsRead.Operation, &api.EventsReadRequest{Source: api.SourceRef{Resource: "news", Kind: api.SourceTopic}})
	}
	small := b.post("/v1/queues/status", `{"lane":{"queue":"jobs"}}`)
	if small.status != 200 {
		t.Errorf("others: %d %s", small.status, small.body)
	}
	held := 0.0
	for deadline := time.Now().Add(20 * time.Second); held < limits.SessionAnswersBytes/2 && time.Now().Before(deadline); {
		_, err := fmt.Sscan(b.answerBytes(), &held)
		check(t, err)
	}
	if held > 1.1*limits.SessionAnswersBytes || held < limits.SessionAnswersBytes/2 {
		t.Errorf("%v bytes are held, of at most %d", held, limits.SessionAnswersBytes)
	}
	got := map[uint32]bool{}
	for range calls {
		kind, id, body, err := p.read()
		check(t, err)
		if kind != 3 || len(body) < limits.PayloadBytes {
			t.Fatalf("call %d: kind %d, %d bytes", id, kind, len(body))
		}
		got[id] = true
	}
	if len(got) != calls {
		t.Errorf("%d calls were answered of %d", len(got), calls)
	}
	check(t, far.Close())
}

func TestConnectionsAreBounded(t *testing.T) {
	b := newBed(t, func(o *httpgw.Options) { o.Connections = 2 })
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
		check(t, err)
		check(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	answers := func(conn net.Conn) bool {
		_, err := fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		buf := make([]byte, 12)
		n := 0
		if err == nil {
			n, _ = conn.Read(buf)
		}
		return strings.HasPrefix(string(buf[:n]), "HTTP/1.1 200")
	}
	first, second := dial(), dial()
	if !answers(first) || !answers(second) {
		t.Fatal("connections within the bound are not answered")
	}
	if answers(dial()) {
		t.Error("one more is answered")
	}
	check(t, first.Close())
	for { // the server hears of it in its own time
		if conn := dial(); answers(conn) {
			return
		}
	}
}
