package httpgw_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a server on a store in memory, with one administrator.
type bed struct {
	t       *testing.T
	db      *keyload.DB
	server  *httpgw.Server
	gateway *httpgw.Gateway
	url     string
	key     string
	keyID   string
	served  chan error
}

// newBed makes the resources docs, orders, news, jobs in the domain main, and
// far, a queue, in the domain other.
func newBed(t *testing.T, change ...func(*httpgw.Options)) *bed {
	t.Helper()
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 2, Durability: api.DurableProcess})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, db.Close()) })
	b := &bed{t: t, db: db, served: make(chan error, 1)}
	ctx := t.Context()
	for name, kind := range map[string]api.ResourceKind{
		"docs": api.KindCollection, "orders": api.KindStreamSet, "news": api.KindTopic, "jobs": api.KindQueue, "far": api.KindQueue,
	} {
		r := &api.ResourcesConfigureRequest{Name: name, Kind: kind}
		if name == "far" {
			r.Domain = "other"
		}
		_, err := db.ConfigureResource(ctx, r)
		check(t, err)
	}
	b.key, b.keyID = b.newKey(api.Principal{ID: "admin", Administrator: true, PolicyEpoch: 1})
	o := httpgw.Options{Door: db.Engine(), Version: "test", Metrics: prometheus.NewRegistry()}
	o.Backup = func(ctx context.Context, c httpgw.Caller, w io.Writer) (string, error) {
		made, err := db.Backups().CreateFor(ctx, c, w, nil)
		if err != nil {
			return "", err
		}
		return made.ID, nil
	}
	for _, f := range change {
		f(&o)
	}
	g, err := httpgw.New(o)
	check(t, err)
	b.gateway = g
	b.server, err = httpgw.Listen(g, httpgw.ListenOptions{Addr: "127.0.0.1:0"})
	check(t, err)
	b.url = b.server.URL()
	go func() { b.served <- b.server.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		check(t, b.server.Shutdown(ctx))
		check(t, <-b.served)
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return b
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bed) newKey(p api.Principal) (key, id string) {
	b.t.Helper()
	_, err := b.db.ConfigurePrincipal(b.t.Context(), p)
	check(b.t, err)
	k, err := b.db.CreateAPIKey(b.t.Context(), &api.APIKeysCreateRequest{PrincipalID: p.ID})
	check(b.t, err)
	return k.APIKey, k.KeyID
}

// answer is one HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// problemBody is an error as a stranger reads it.
type problemBody struct {
	Type, Title, Detail, Code, Reason, Retry, CommandID string
	Status                                              int
	Recorded                                            *bool
	RetryAfterMillis                                    int64
	Violations                                          []struct{ Path, Message string }
	Facts                                               map[string]string
}

func (a answer) problem(t *testing.T) problemBody {
	t.Helper()
	var p problemBody
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("status %d: content type %q, body %.200s", a.status, got, a.body)
	}
	check(t, json.Unmarshal(a.body, &p))
	return p
}

// send makes one request; headers are given as pairs.
func (b *bed) send(method, path string, body io.Reader, headers ...string) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, body)
	check(b.t, err)
	req.Header.Set("Authorization", "Bearer "+b.key)
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	check(b.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	check(b.t, err)
	return answer{resp.StatusCode, resp.Header, text}
}

// post sends JSON to an operation.
func (b *bed) post(path, body string, headers ...string) answer {
	b.t.Helper()
	return b.send(http.MethodPost, path, strings.NewReader(body), append([]string{"Content-Type", "application/json"}, headers...)...)
}

// positions are what every shard's log has evaluated: a refusal at the door
// leaves them alone.
func (b *bed) positions() []uint64 {
	var out []uint64
	for _, s := range b.db.Engine().Status().Shards {
		out = append(out, s.Position)
	}
	return out
}

// empty fails unless nothing is stored in any resource.
func (b *bed) empty() {
	b.t.Helper()
	for d, err := range b.db.Documents(b.t.Context(), api.PartitionRef{}, "docs", "") {
		b.t.Errorf("document %+v, %v", d, err)
	}
	for e, err := range b.db.Events(b.t.Context(), api.SourceRef{Resource: "news"}, 0) {
		b.t.Errorf("event %+v, %v", e, err)
	}
	for m, err := range b.db.Messages(b.t.Context(), api.LaneRef{Queue: "jobs"}, "") {
		b.t.Errorf("message %+v, %v", m, err)
	}
}

func reader(b []byte) io.Reader { return bytes.NewReader(b) }

// record answers one request without a connection.
func record(h http.Handler, method, path string) answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return answer{w.Code, w.Header(), w.Body.Bytes()}
}
