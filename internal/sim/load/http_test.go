package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/gateway/httpgw"
)

// server is a bed that is served.
type server struct {
	*bed
	url, key string
	plain    *http.Client
}

func newServer(t *testing.T) *server {
	s := &server{bed: newBed(t), plain: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: asked, ExpectContinueTimeout: time.Minute}}}
	_, err := s.db.ConfigurePrincipal(t.Context(), api.Principal{ID: "admin", Administrator: true, PolicyEpoch: 1})
	s.must(err)
	k, err := s.db.CreateAPIKey(t.Context(), &api.APIKeysCreateRequest{PrincipalID: "admin"})
	s.must(err)
	g, err := httpgw.New(httpgw.Options{Door: s.db.Engine(), Metrics: prometheus.NewRegistry()})
	s.must(err)
	l, err := httpgw.Listen(g, httpgw.ListenOptions{Addr: "127.0.0.1:0"})
	s.must(err)
	s.url, s.key = l.URL(), k.APIKey
	served := make(chan error, 1)
	go func() { served <- l.Serve() }()
	t.Cleanup(func() {
		s.plain.CloseIdleConnections()
		s.must(l.Shutdown(context.Background()))
		s.must(<-served)
	})
	return s
}

// post sends a body as a stranger would.
func (s *server) post(path string, body []byte) error {
	req, err := http.NewRequest(http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Idempotency-Key", api.NewCommandID())
	req.Header.Set("Expect", "100-continue") // a body that is refused is not sent
	resp, err := s.plain.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusOK {
		return err
	}
	f := &fault.Error{}
	if err := json.Unmarshal(text, f); err != nil {
		return fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return f
}

// The same over HTTP, where each body is read by the server: no more of them than
// may be is held, and completions come over sessions all the while.
func TestBeyondCapacityAServersMemoryStaysBoundedAndCompletionsGoOn(t *testing.T) {
	s := newServer(t)
	worker := client.New(s.url, s.key)
	defer worker.Close()
	s.hold(worker)
	quiet, _ := s.work(worker, 150)
	message := `{"kind":"enqueue","queue":"bulk","message":{"payload":"` + strings.Repeat("x", payloadBytes-2) + `"}}`
	mutations := strings.Repeat(message+",", batch-1) + message
	o := &overload{}
	var busy, calls = quiet, 0
	grew := heap(func() {
		bodies := make([][]byte, 16)
		for n := range bodies {
			bodies[n] = fmt.Appendf(nil, `{"partition":{"key":"bulk-%d"},"mutations":[%s]}`, n, mutations)
		}
		o.ask(t, asked, func(caller int) error { return s.post("/v1/commands/commit", bodies[caller%len(bodies)]) })
		busy, calls = s.work(worker, completions())
		o.stop.Store(true)
		o.wg.Wait()
	})
	s.judge("over HTTP", o, quiet, busy, calls, grew, heapBound(3)) // body, request and encoding
}
