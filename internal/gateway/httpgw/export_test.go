package httpgw

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/keyload/keyload/fault"
)

// ProblemHeader are the headers an error is answered with.
func ProblemHeader(f *fault.Error) http.Header {
	w := httptest.NewRecorder()
	(&Gateway{}).writeProblem(w, jsonType, f, f.Code.Status())
	return w.Header()
}

// ServeSession runs a session on a connection that was upgraded.
func (g *Gateway) ServeSession(conn net.Conn, key string) {
	g.serveSession(conn, bufio.NewReader(conn), key)
}

// IdleTime is how long a session may be silent.
const IdleTime = idleTime

// Answers is the account of answers with a bound, half of it a share.
type Answers struct{ a answers }

func NewAnswers(max int) *Answers { return &Answers{answers{max: max, share: max / 2}} }

func (x *Answers) Take(ctx context.Context, tenant string, n int) error {
	return x.a.take(ctx, tenant, n)
}
func (x *Answers) More(tenant string, n, reserve int) bool { return x.a.more(tenant, n, reserve) }
func (x *Answers) Give(tenant string, n int)               { x.a.give(tenant, n) }
func (x *Answers) Held() int                               { return x.a.bytes() }

// Waiting is how many of a tenant wait in line.
func (x *Answers) Waiting(tenant string) int {
	x.a.mu.Lock()
	defer x.a.mu.Unlock()
	return len(x.a.lines[tenant])
}

// ReadingTime is how long a caller may take to read so many bytes.
func ReadingTime(bytes int) time.Duration { return readingTime(bytes) }
