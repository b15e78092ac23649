package client

import (
	"context"
	"strings"
	"time"

	"github.com/keyload/keyload/fault"
)

// server is one of the servers a client may call: nodes of one cluster, any of
// which takes any call.
type server struct {
	url, key string
	patience patience
	closing  context.Context
	plain    *plain
	lines    []*line
}

// patience is how long a server may take to show that it is there.
type patience struct {
	dial time.Duration // to accept a connection
	// quiet is how long a connection may be silent before a ping, and after it
	// before the server counts as gone.
	quiet time.Duration
}

// patient is for the only server there is; where there are others, less is lost by
// trying them.
func patient(servers int) patience {
	if servers == 1 {
		return patience{dialTime, quietTime}
	}
	return patience{2 * time.Second, 3 * time.Second}
}

// servers makes a server of each URL in a list parted by commas.
func servers(ctx context.Context, urls, key string, cfg config) ([]*server, *fault.Error) {
	var out []*server
	var parts []string
	for text := range strings.SplitSeq(urls, ",") {
		if text = strings.TrimRight(strings.TrimSpace(text), "/"); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return nil, checkURL("")
	}
	for _, text := range parts {
		if f := checkURL(text); f != nil {
			return nil, f
		}
		out = append(out, newServer(ctx, text, key, cfg, patient(len(parts))))
	}
	return out, nil
}

func newServer(closing context.Context, url, key string, cfg config, p patience) *server {
	s := &server{url: url, key: key, patience: p, closing: closing}
	s.plain = &plain{url, key, transport(cfg.tls, p), closing}
	for range cfg.sessions {
		s.lines = append(s.lines, newLine(s, cfg.tls))
	}
	return s
}

// once tries a request once, over a session if there is one.
func (s *server) once(ctx context.Context, r request, resp any) error {
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	if s.closing.Err() != nil {
		return errClosed()
	}
	for _, l := range s.pick() {
		open, f := l.session(ctx)
		if f != nil {
			return f
		}
		if open != nil {
			return open.call(ctx, r, resp)
		}
	}
	return s.plain.call(ctx, r, resp)
}

// pick is the line with the fewest calls in flight; empty without sessions.
func (s *server) pick() []*line {
	if len(s.lines) <= 1 {
		return s.lines
	}
	best, least := 0, s.lines[0].load()
	for i, l := range s.lines[1:] {
		if n := l.load(); n < least {
			best, least = i+1, n
		}
	}
	return s.lines[best : best+1]
}

func (s *server) close() {
	for _, l := range s.lines {
		l.close()
	}
	s.plain.transport.CloseIdleConnections()
}

// current is the server that calls go to, as long as it works.
func (c *Client) current() *server { return c.servers[int(c.at.Load())%len(c.servers)] }

// leave makes the next server the current one, unless another call has done so: of
// many that fail on one server, one moves on.
func (c *Client) leave(s *server) {
	at := c.at.Load()
	if c.servers[int(at)%len(c.servers)] == s {
		c.at.CompareAndSwap(at, at+1)
	}
}

// elsewhere says whether another server may answer what this one did not: it cannot
// be reached, its answer was lost, it knows no leader, or it has stopped.
func elsewhere(f *fault.Error) bool {
	switch f.Code {
	case fault.OwnershipLost, fault.UnknownWriteOutcome, fault.ClockUncertain, fault.RecoveryRequired:
		return true
	}
	return false
}
