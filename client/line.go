package client

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/frame"
)

// refusedTime is how long plain HTTP is used after a session was refused.
const refusedTime = time.Minute

// line keeps one session open: it connects when there is none, once for all
// callers that wait.
type line struct {
	server    *server
	transport *http.Transport

	mu      sync.Mutex
	current *session
	former  []*session // take no further calls; they end with their last answer
	dialing *dial
	refused time.Time // no session is tried before
	closed  bool
}

// dial is one attempt to connect.
type dial struct {
	done    chan struct{} // closed at its end
	session *session      // nil: use plain HTTP
	err     *fault.Error
}

func newLine(s *server, t *tls.Config) *line {
	tr := transport(t, s.patience)
	tr.DisableKeepAlives = true // a session's connection is never shared
	// HTTP/2 has no upgrade.
	tr.Protocols = new(http.Protocols)
	tr.Protocols.SetHTTP1(true)
	return &line{server: s, transport: tr}
}

// session is the open session; nil without an error means that the server gives
// none.
func (l *line) session(ctx context.Context) (*session, *fault.Error) {
	l.mu.Lock()
	if s := l.current; s != nil && s.usable() {
		l.mu.Unlock()
		return s, nil
	}
	if l.closed {
		l.mu.Unlock()
		return nil, errClosed()
	}
	if l.dialing == nil {
		if time.Now().Before(l.refused) {
			l.mu.Unlock()
			return nil, nil
		}
		l.dialing = &dial{done: make(chan struct{})}
		go l.connect(l.dialing)
	}
	d := l.dialing
	l.mu.Unlock()
	select {
	case <-d.done:
		return d.session, d.err
	case <-ctx.Done():
		return nil, notSent(ctx)
	}
}

func (l *line) connect(d *dial) {
	ctx, cancel := context.WithTimeout(l.server.closing, l.server.patience.dial)
	defer cancel()
	s, err := l.open(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s != nil:
		l.former = slices.DeleteFunc(append(l.former, l.current), func(s *session) bool { return s == nil || s.ended() })
		l.current = s
	case err == nil:
		l.refused = time.Now().Add(refusedTime)
	}
	d.session, d.err = s, err
	l.dialing = nil
	close(d.done)
}

// open asks for the upgrade. Neither session nor error means that the server,
// or something before it, gives no sessions.
func (l *line) open(ctx context.Context) (*session, *fault.Error) {
	var conn net.Conn
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { conn = i.Conn }})
	req, err := http.NewRequestWithContext(traced, http.MethodGet, l.server.url+"/v1/session", nil)
	if err != nil {
		return nil, fault.New(fault.Validation, "url", "the server's URL cannot be used")
	}
	req.Header.Set("Authorization", "Bearer "+l.server.key)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", frame.Protocol)
	req.Header.Set("Accept", cborType)
	answer, err := l.transport.RoundTrip(req)
	if err != nil {
		return nil, unreachable(describe(err))
	}
	body, upgraded := answer.Body.(io.ReadWriteCloser)
	calls, _ := strconv.Atoi(answer.Header.Get(frame.CallsHeader))
	if answer.StatusCode != http.StatusSwitchingProtocols || !upgraded || calls < 1 {
		defer answer.Body.Close()
		return nil, refusal(answer)
	}
	return newSession(conn, body, calls, l.server.patience.quiet), nil
}

// refusal is why there is no session; nil where plain HTTP shall be tried.
func refusal(answer *http.Response) *fault.Error {
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		if err == nil {
			return readFault(answer.StatusCode, answer.Header.Get("Content-Type"), body)
		}
	}
	return nil
}

// load is how many calls are in flight.
func (l *line) load() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return 0
	}
	return len(l.current.room)
}

// close ends every session and waits for its goroutines.
func (l *line) close() {
	l.mu.Lock()
	l.closed = true
	d := l.dialing
	l.mu.Unlock()
	if d != nil {
		<-d.done
	}
	l.mu.Lock()
	open := append(l.former, l.current)
	l.mu.Unlock()
	for _, s := range open {
		if s != nil {
			s.fail(net.ErrClosed)
			<-s.done
		}
	}
	l.transport.CloseIdleConnections()
}
