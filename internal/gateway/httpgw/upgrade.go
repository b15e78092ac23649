package httpgw

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/frame"
	"github.com/keyload/keyload/internal/limits"
)

// openSession turns the connection of a request into a session.
func (g *Gateway) openSession(w http.ResponseWriter, r *http.Request) {
	key, f := bearer(r.Header)
	if f == nil {
		_, err := g.door.Authenticate(r.Context(), key)
		if err != nil {
			f = toFault(err, nil, nil)
		}
	}
	if f != nil {
		g.problem(w, r, f)
		return
	}
	if r.ProtoMajor != 1 || !asksFor(r.Header, "Connection", "upgrade") || !asksFor(r.Header, "Upgrade", frame.Protocol) {
		w.Header().Set("Upgrade", frame.Protocol)
		w.Header().Set("Connection", "Upgrade")
		f := fault.New(fault.Validation, "upgrade_required",
			"a session is opened over HTTP/1.1 with the headers Connection: Upgrade and Upgrade: %s", frame.Protocol)
		g.writeProblem(w, answerType(r), f, http.StatusUpgradeRequired)
		return
	}
	if f := g.sessions.take(); f != nil {
		g.problem(w, r, f)
		return
	}
	defer g.sessions.give()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		g.problem(w, r, fault.New(fault.UnsupportedCapability, "no_upgrade", "this connection cannot carry a session"))
		return
	}
	g.serveSession(conn, buffered.Reader, key)
}

func asksFor(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// serveSession answers the upgrade and runs the session until it ends.
func (g *Gateway) serveSession(conn net.Conn, early *bufio.Reader, key string) {
	_ = conn.SetDeadline(time.Now().Add(answerTime)) // the server's deadlines were for a request
	_, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %d\r\n\r\n",
		frame.Protocol, frame.CallsHeader, g.sessionCalls)
	if err != nil {
		_ = conn.Close()
		return
	}
	s := &session{g: g, key: key, conn: conn, calls: map[uint32]*call{}, jobs: make(chan job)}
	s.ctx, s.cancel = context.WithCancel(g.serving)
	s.room.L = &s.mu
	s.answers.max, s.answers.share = limits.SessionAnswersBytes, limits.SessionAnswersBytes
	var from io.Reader = s
	if n := early.Buffered(); n > 0 {
		sent, _ := early.Peek(n)
		from = io.MultiReader(bytes.NewReader(sent), s)
	}
	s.in = frame.NewReader(from, skipBytes)
	s.out = frame.NewWriter(conn, func(error) { _ = conn.Close() })
	if g.sessions.join(s) {
		defer g.sessions.part(s)
	} else {
		s.drain()
	}
	s.run()
}
