package httpgw

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"

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
