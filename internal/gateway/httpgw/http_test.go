package httpgw_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/wire"
)

func TestEveryOperationIsAtItsPathAndAnswersBothEncodings(t *testing.T) {
	b := newBed(t)
	for _, o := range api.Operations() {
		for _, mediaType := range []string{"application/json", "application/cbor"} {
			body := "{}"
			if mediaType == "application/cbor" {
				body = "\xa0"
			}
			a := b.send(http.MethodPost, o.Path(), strings.NewReader(body), "Content-Type", mediaType)
			// The smallest request is complete for some operations only; the others
			// say what is missing, as the operation they are.
			f := &fault.Error{}
			switch {
			case a.status == http.StatusOK:
				if got := a.header.Get("Content-Type"); got != mediaType {
					t.Errorf("%s: answers %s with %s", o.Name, mediaType, got)
				}
			case mediaType == "application/cbor":
				check(t, wire.ReadCBOR(a.body, f))
			default:
				check(t, json.Unmarshal(a.body, f))
			}
			if a.status != http.StatusOK && f.Code != fault.Validation {
				t.Errorf("%s with %s: %d %v", o.Name, mediaType, a.status, f)
			}
		}
		a := b.send(http.MethodGet, o.Path(), nil)
		if p := a.problem(t); a.status != 405 || a.header.Get("Allow") != "POST" || p.Status != 405 || p.Reason != "method_not_allowed" {
			t.Errorf("GET %s: %d %v %+v", o.Path(), a.status, a.header, p)
		}
	}
}

func TestTheAnswerHasTheEncodingThatIsAskedForAndTheSameContent(t *testing.T) {
	b := newBed(t)
	want, err := b.db.ListResources(t.Context(), &api.ResourcesListRequest{})
	check(t, err)
	request, err := wire.EncodeCBOR(&api.ResourcesListRequest{Tenant: "default", Database: "main", Limit: 100})
	check(t, err)
	for _, c := range []struct{ contentType, accept, want string }{
		{"application/json", "", "application/json"},
		{"application/cbor", "", "application/cbor"},
		{"application/cbor", "*/*", "application/cbor"},
		{"application/json; charset=UTF-8", "application/cbor", "application/cbor"},
		{"application/cbor", "application/json, text/plain", "application/json"},
		{"", "", "application/json"},
	} {
		body := []byte("{}")
		if c.contentType == "application/cbor" {
			body = request
		}
		a := b.send(http.MethodPost, "/v1/resources/list", reader(body), "Content-Type", c.contentType, "Accept", c.accept)
		got := &api.ResourcesListResponse{}
		if c.want == "application/json" {
			check(t, wire.ReadJSON(a.body, got))
		} else {
			check(t, wire.ReadCBOR(a.body, got))
		}
		if a.status != 200 || a.header.Get("Content-Type") != c.want || len(got.Resources) != 5 || !reflect.DeepEqual(got.Resources, want.Resources) {
			t.Errorf("%+v: %d %s %+v", c, a.status, a.header.Get("Content-Type"), got)
		}
	}
}

func TestOtherMediaTypesAndCompressedBodiesAreRefused(t *testing.T) {
	b := newBed(t)
	for name, h := range map[string][]string{
		"form":       {"Content-Type", "application/x-www-form-urlencoded"},
		"latin":      {"Content-Type", "application/json; charset=latin1"},
		"compressed": {"Content-Type", "application/json", "Content-Encoding", "gzip"},
	} {
		a := b.send(http.MethodPost, "/v1/resources/list", strings.NewReader("{}"), h...)
		if p := a.problem(t); a.status != 400 || p.Code != "Validation" {
			t.Errorf("%s: %d %+v", name, a.status, p)
		}
	}
}

func TestAProblemHasEveryFieldOfTheContract(t *testing.T) {
	b := newBed(t)
	a := b.post("/v1/documents/get", `{"collection":"docs","id":"missing"}`)
	p := a.problem(t)
	if p.Type != "urn:keyload:error:NotFound" || p.Title != fault.NotFound.Title() || p.Status != 404 || p.Detail == "" ||
		p.Code != "NotFound" || p.Reason == "" || p.Retry != "after_change" || p.Recorded == nil || *p.Recorded {
		t.Errorf("%s", a.body)
	}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", a.header)
	}
	a = b.post("/v1/nowhere/at-all", `{}`)
	if p := a.problem(t); a.status != 404 || p.Reason != "unknown_route" {
		t.Errorf("%d %+v", a.status, p)
	}
}

func TestAnErrorThatSaysWhenToComeBackHasARetryAfterHeader(t *testing.T) {
	b := newBed(t)
	a := b.send(http.MethodPost, "/v1/documents/get", strings.NewReader(`{}`))
	if got := a.header.Get("Retry-After"); got != "" {
		t.Errorf("Retry-After %q without retryAfterMillis", got)
	}
	for millis, want := range map[int64]string{1: "1", 1000: "1", 1001: "2"} {
		f := fault.New(fault.ResourceExhausted, "busy", "busy")
		f.RetryAfterMillis = millis
		if got := httpgw.ProblemHeader(f).Get("Retry-After"); got != want {
			t.Errorf("%d ms: %q, want %q", millis, got, want)
		}
	}
}

func TestAStrangerIsRefusedBeforeTheBodyIsRead(t *testing.T) {
	b := newBed(t)
	for name, header := range map[string]string{
		"no key": "", "other scheme": "Basic abc", "no secret": "Bearer ", "unknown": "Bearer kl_nobody_secret", "malformed": "Bearer x",
		"wrong secret": "Bearer " + b.key[:len(b.key)-1] + "?",
	} {
		body := &touched{}
		a := b.send(http.MethodPost, "/v1/commands/commit", io.MultiReader(strings.NewReader(""), body), "Authorization", header, "Expect", "100-continue")
		p := a.problem(t)
		if a.status != 401 || p.Code != "Unauthenticated" || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d %+v", name, a.status, p)
		}
		if body.read {
			t.Errorf("%s: the body was asked for", name)
		}
		if key := strings.TrimPrefix(header, "Bearer "); len(key) > 5 && strings.Contains(string(a.body), key) {
			t.Errorf("%s: the answer holds the key", name)
		}
	}
}

// touched notes that it was read.
type touched struct{ read bool }

func (t *touched) Read([]byte) (int, error) { t.read = true; return 0, io.EOF }

func TestTheIdempotencyKeyIsTheCommandIDWhereTheBodyHasNone(t *testing.T) {
	b := newBed(t)
	const other = "6f9619ff-8b86-4d01-b42d-000000000001"
	without := `{"mutations":[` + put(`{"n":1}`, ``) + `]}`
	for i, c := range []struct {
		name, body, header string
		status             int
	}{
		{"header only", without, someID, 200},
		{"repeated in quotes", without, `"` + someID + `"`, 200},
		{"both equal", commit(put(`{"n":1}`, ``)), someID, 200},
		{"both differ", commit(put(`{"n":1}`, ``)), other, 400},
		{"no id at all", without, "", 400},
		{"no UUID", without, "mine", 400},
	} {
		a := b.post("/v1/commands/commit", c.body, "Idempotency-Key", c.header)
		if a.status != c.status {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
		if c.name == "both differ" && a.problem(t).Reason != "idempotency_key_mismatch" {
			t.Errorf("%s", a.body)
		}
		if i < 3 { // the same command every time, so the same revision
			doc, err := b.db.Get(t.Context(), api.PartitionRef{}, "docs", "a")
			if err != nil || doc.Revision != 1 {
				t.Errorf("%s: %+v, %v", c.name, doc, err)
			}
		}
	}
	// A receive has its id under another name.
	a := b.post("/v1/queues/receive", `{"lane":{"queue":"jobs"}}`, "Idempotency-Key", other)
	if a.status != 200 {
		t.Errorf("receive: %d %s", a.status, a.body)
	}
}

func TestAClientThatGoesAwayClaimsNothing(t *testing.T) {
	b := newBed(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	check(t, err)
	body := `{"requestId":"` + someID + `","lane":{"queue":"jobs"},"waitMillis":20000,"leaseSeconds":60}`
	_, err = fmt.Fprintf(conn, "POST /v1/queues/receive HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", b.key, len(body), body)
	check(t, err)
	gone := b.inFlight(1)
	check(t, conn.Close())
	gone() // returns when the server has noticed
	_, err = b.db.Commit(t.Context(), api.PartitionRef{}, keyload.Enqueue("jobs", keyload.Message(1)))
	check(t, err)
	status, err := b.db.QueueStatus(t.Context(), api.LaneRef{Queue: "jobs"})
	if err != nil || status.Counts.Ready != 1 || status.Counts.Leased != 0 {
		t.Errorf("%+v, %v", status, err)
	}
}

// inFlight waits until n requests are in evaluation and returns a function that
// waits until none is.
func (b *bed) inFlight(n int) (ended func()) {
	b.t.Helper()
	wait := func(want string) {
		b.t.Helper()
		deadline, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
		defer cancel()
		for b.metric("keyload_requests_in_flight") != want {
			if deadline.Err() != nil {
				b.t.Fatalf("in flight: %s, want %s", b.metric("keyload_requests_in_flight"), want)
			}
		}
	}
	wait(strconv.Itoa(n))
	return func() { wait("0") }
}

// metric is the value of a series, as /metrics shows it; "" when it is not
// there.
func (b *bed) metric(series string) string {
	b.t.Helper()
	lines := bufio.NewScanner(reader(b.send(http.MethodGet, "/metrics", nil).body))
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			return v
		}
	}
	return ""
}

func TestMetricsCountRequestsByOperationAndCode(t *testing.T) {
	b := newBed(t)
	b.post("/v1/documents/get", `{"collection":"docs","id":"a"}`)
	b.post("/v1/resources/list", `{}`)
	b.post("/v1/resources/list", `{}`)
	for series, want := range map[string]string{
		`keyload_requests_total{code="NotFound",operation="documents.get",surface="http"}`: "1",
		`keyload_requests_total{code="OK",operation="resources.list",surface="http"}`:      "2",
		`keyload_request_seconds_count{operation="resources.list",surface="http"}`:         "2",
		`keyload_sessions`: "0",
	} {
		if got := b.metric(series); got != want {
			t.Errorf("%s is %q, want %q", series, got, want)
		}
	}
	if text := string(b.send(http.MethodGet, "/metrics", nil).body); strings.Contains(text, b.key) || strings.Contains(text, "docs") {
		t.Error("the metrics hold a name that a caller chose")
	}
}
