package httpgw

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// agentsPath is where agents call operations by a protocol of their own.
const agentsPath = "/mcp"

// serveAgent answers one request of an agent. What becomes of it is decided by Options.Agents,
// whose calls of operations come back to this gateway with the context of this request. It
// costs strangers nothing, its body is bounded as every body is, and what its operations
// answer is held until the agent has read it.
func (g *Gateway) serveAgent(w http.ResponseWriter, r *http.Request) {
	caller, f := g.authenticate(r)
	if f != nil {
		g.problem(w, r, f)
		return
	}
	body, held, f := g.readBody(r, caller.Tenant())
	defer g.bodies.give(caller.Tenant(), held)
	if f != nil {
		g.problem(w, r, f)
		return
	}
	defer body.Release()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})  // the deadlines of the server are for what is answered soon,
	_ = control.SetWriteDeadline(time.Time{}) // and agents may call what is long
	lent := &lentRooms{}
	defer lent.empty()
	r = r.WithContext(context.WithValue(r.Context(), lentKey{}, lent))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body.B)), int64(len(body.B))
	g.agents.ServeHTTP(&agentWriter{w, control}, r)
}

// agentWriter gives an agent time to read by what it gets.
type agentWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *agentWriter) Write(b []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(readingTime(len(b))))
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *agentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// lentRooms are those of the answers that one request of an agent led to.
type lentRooms struct {
	mu    sync.Mutex
	rooms []*room
}

type lentKey struct{}

// release gives the room of an answer back, or keeps it for the agent's request that has
// asked.
func release(ctx context.Context, held *room) {
	lent, ok := ctx.Value(lentKey{}).(*lentRooms)
	if !ok {
		held.empty()
		return
	}
	lent.mu.Lock()
	defer lent.mu.Unlock()
	lent.rooms = append(lent.rooms, held)
}

func (l *lentRooms) empty() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rooms {
		r.empty()
	}
}

// surfaceOf is the surface on which a request of an operation came.
func surfaceOf(ctx context.Context) string {
	if _, ok := ctx.Value(lentKey{}).(*lentRooms); ok {
		return surfaceAgents
	}
	return surfaceHTTP
}
