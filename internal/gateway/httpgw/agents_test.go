package httpgw_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/limits"
)

// What operations answered for an agent is held until the agent's own answer is sent.
func TestAnswersForAnAgentAreHeldUntilItHasThem(t *testing.T) {
	held := make(chan string, 1)
	var b *bed
	b = newBed(t, func(o *httpgw.Options) {
		o.Agents = func(operations http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner := httptest.NewRequestWithContext(r.Context(), http.MethodPost, "/v1/events/read", strings.NewReader(readNews))
				inner.Header.Set("Authorization", r.Header.Get("Authorization"))
				got := httptest.NewRecorder()
				operations.ServeHTTP(got, inner)
				held <- b.answerBytes()
				w.WriteHeader(got.Code)
			})
		}
	})
	b.large(1)
	if a := b.post("/mcp", "{}"); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if n := <-held; len(n) < len("1000000") {
		t.Errorf("%s bytes were held, of an answer of %d", n, limits.PayloadBytes)
	}
	if n := b.answerBytes(); n != "0" {
		t.Errorf("%s bytes are held still", n)
	}
	if got := b.send(http.MethodGet, "/metrics", nil); !strings.Contains(string(got.body), `keyload_requests_total{code="OK",operation="events.read",surface="mcp"} 1`) {
		t.Error("the call is not counted as an agent's")
	}
}

func TestAServerWithoutAgentsHasNoSuchPath(t *testing.T) {
	if a := newBed(t).post("/mcp", "{}"); a.status != http.StatusNotFound {
		t.Errorf("%d %s", a.status, a.body)
	}
}
