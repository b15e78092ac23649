package httpgw_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/limits"
)

// upload is a request whose body has not been sent yet. The server has room for it:
// it has asked for the body.
type upload struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// begin sends the head of a request; size -1 is a body that does not say how long
// it is. It returns nil with the answer when the server does not want the body.
func (b *bed) begin(key, path string, size int) (*upload, *http.Response) {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	check(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	length := fmt.Sprintf("Content-Length: %d", size)
	if size < 0 {
		length = "Transfer-Encoding: chunked"
	}
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\n%s\r\n\r\n", path, key, length)
	check(b.t, err)
	u := &upload{b.t, conn, bufio.NewReader(conn)}
	resp, err := http.ReadResponse(u.in, nil)
	check(b.t, err)
	if resp.StatusCode == http.StatusContinue {
		return u, nil
	}
	return nil, resp
}

// send sends text and blanks up to a size.
func (u *upload) send(text string, size int) {
	u.t.Helper()
	_, err := io.WriteString(u.conn, text+strings.Repeat(" ", size-len(text)))
	check(u.t, err)
}

func (u *upload) status() int {
	u.t.Helper()
	resp, err := http.ReadResponse(u.in, nil)
	check(u.t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	check(u.t, err)
	return resp.StatusCode
}

const getDoc = `{"collection":"docs","id":"none"}`

// refused wants the refusal of a body that was not read.
func refused(t *testing.T, resp *http.Response, reason string) {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	check(t, err)
	p := answer{resp.StatusCode, resp.Header, body}.problem(t)
	if p.Status != 429 || p.Code != "ResourceExhausted" || p.Reason != reason || p.RetryAfterMillis == 0 || resp.Header.Get("Retry-After") == "" || p.Retry != "same_id" {
		t.Errorf("refused with %+v, want %s", p, reason)
	}
}

// The server holds so many bytes of bodies: of one tenant half, and of small ones
// some more, whatever else there is.
func TestBodiesAreBoundedBeforeTheyAreRead(t *testing.T) {
	const half = 1 << 20
	b := newBed(t, func(o *httpgw.Options) { o.BodiesBytes = 2 * half })
	other := b.otherTenant()
	held, _ := b.begin(b.key, "/v1/documents/get", half-100_000)
	for _, c := range []struct {
		who    string
		size   int
		reason string
	}{
		{b.key, 100_001, "bodies_tenant"}, {other, half + 1, "bodies_tenant"},
	} {
		u, resp := b.begin(c.who, "/v1/documents/get", c.size)
		if u != nil {
			t.Fatalf("%d bytes more were taken", c.size)
		}
		refused(t, resp, c.reason)
	}
	full, _ := b.begin(b.key, "/v1/documents/get", 100_000) // exactly as many as there may be
	theirs, _ := b.begin(other, "/v1/documents/get", half)
	_, resp := b.begin(other, "/v1/documents/get", limits.SmallBodyBytes+1)
	refused(t, resp, "bodies")
	if got := b.post("/v1/documents/get", getDoc); got.status != 404 { // a small one
		t.Errorf("a small body: %d %s", got.status, got.body)
	}
	held.send(getDoc, half-100_000)
	full.send(getDoc, 100_000)
	theirs.send(getDoc, half)
	for _, u := range []*upload{held, full} {
		if got := u.status(); got != 404 {
			t.Errorf("what had room is answered with %d", got)
		}
	}
	if got := theirs.status(); got != 403 && got != 404 {
		t.Errorf("what had room is answered with %d", got)
	}
	b.holdsNothing()
}

// otherTenant makes a key of another tenant.
func (b *bed) otherTenant() string {
	b.t.Helper()
	_, err := b.db.ConfigurePrincipal(b.t.Context(), api.Principal{ID: "admin", Tenant: "other", Roles: []api.Role{api.RoleAdmin}, PolicyEpoch: 1})
	check(b.t, err)
	k, err := b.db.CreateAPIKey(b.t.Context(), &api.APIKeysCreateRequest{Tenant: "other", PrincipalID: "admin"})
	check(b.t, err)
	return k.APIKey
}

func (b *bed) holdsNothing() {
	b.t.Helper()
	if got := string(b.send(http.MethodGet, "/metrics", nil).body); !strings.Contains(got, "\nkeyload_request_body_bytes 0\n") {
		b.t.Errorf("bodies are held still: %s", got[strings.Index(got, "keyload_request_body_bytes"):][:120])
	}
}

// A body that does not say how long it is takes room as it comes.
func TestABodyOfUnknownLengthTakesRoomAsItComes(t *testing.T) {
	const half = 1 << 20
	b := newBed(t, func(o *httpgw.Options) { o.BodiesBytes = 2 * half })
	u, _ := b.begin(b.key, "/v1/documents/get", -1)
	chunk := func(n int) { // as much as this must come before more is read
		_, err := fmt.Fprintf(u.conn, "%x\r\n%s\r\n", n, strings.Repeat(" ", n))
		check(t, err)
	}
	chunk(half)
	chunk(1)
	if got := u.status(); got != 429 {
		t.Errorf("one byte above the bound: %d", got)
	}
	u, _ = b.begin(b.key, "/v1/documents/get", -1)
	chunk(half - limits.SmallBodyBytes)
	_, err := fmt.Fprintf(u.conn, "%x\r\n%s\r\n0\r\n\r\n", len(getDoc), getDoc)
	check(t, err)
	if got := u.status(); got != 404 {
		t.Errorf("within the bound: %d", got)
	}
	b.holdsNothing()
}

// Calls of a session are bounded with all others; one that is refused costs the
// connection nothing but its bytes.
func TestBodiesOfSessionsAreBoundedWithTheOthers(t *testing.T) {
	const half = 1 << 20
	b := newBed(t, func(o *httpgw.Options) { o.BodiesBytes = 2 * half })
	held, _ := b.begin(b.key, "/v1/documents/get", half)
	p := b.dial(b.key)
	large := api.Message{PayloadBase64: make([]byte, limits.SmallBodyBytes), ContentType: "x/y"}
	p.call(1, api.CommandsCommit.Operation, &api.CommandsCommitRequest{CommandID: api.NewCommandID(), Mutations: []api.Mutation{{Enqueue: &api.Enqueue{Queue: "jobs", Message: large}}}})
	if f := p.result(1, nil); f == nil || f.Reason != "bodies_tenant" || f.RetryAfterMillis == 0 {
		t.Errorf("a large one: %v", f)
	}
	var got api.DocumentsGetResponse
	p.call(2, api.DocumentsGet.Operation, &api.DocumentsGetRequest{Collection: "docs", ID: "none"})
	if f := p.result(2, &got); f == nil || f.Code != fault.NotFound {
		t.Errorf("a small one: %v", f)
	}
	held.send(getDoc, half)
	if got := held.status(); got != 404 {
		t.Errorf("what had room is answered with %d", got)
	}
	p.call(3, api.CommandsCommit.Operation, &api.CommandsCommitRequest{CommandID: api.NewCommandID(), Mutations: []api.Mutation{{Enqueue: &api.Enqueue{Queue: "jobs", Message: large}}}})
	var done api.CommandsCommitResponse
	if f := p.result(3, &done); f != nil {
		t.Errorf("with room again: %v", f)
	}
	b.holdsNothing()
}

func TestSessionsAreBounded(t *testing.T) {
	b := newBed(t, func(o *httpgw.Options) { o.Sessions = 1 })
	first := b.dial(b.key)
	refused(t, b.askForSession(), "sessions")
	check(t, first.conn.Close())
	for { // the server hears of it in its own time
		resp := b.askForSession()
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return
		}
		refused(t, resp, "sessions")
	}
}

func (b *bed) askForSession() *http.Response {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	check(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET /v1/session HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: keyload-session/1\r\n\r\n", b.key)
	check(b.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	check(b.t, err)
	return resp
}
