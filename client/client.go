package client

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// Client calls one server. It is safe for concurrent use; make one and keep it.
// It implements api.Doer.
type Client struct {
	Calls

	url      string
	key      string
	attempts int
	badURL   *fault.Error
	plain    *plain
	lines    []*line
	closing  context.Context
	stop     context.CancelFunc
	closed   sync.Once
}

// Option changes a client.
type Option func(*config)

type config struct {
	attempts int
	sessions int
	tls      *tls.Config
}

// HTTPOnly makes every call a request of its own, without a session. Use it
// where something between client and server counts or routes requests.
func HTTPOnly() Option { return func(c *config) { c.sessions = 0 } }

// Sessions sets how many connections carry sessions; 1 by default. More help
// only where single requests are large.
func Sessions(n int) Option { return func(c *config) { c.sessions = n } }

// Attempts sets how often a call is tried, the first time included; 10 by
// default, which takes about four seconds. The context of the call ends it
// earlier.
func Attempts(n int) Option { return func(c *config) { c.attempts = max(1, n) } }

// TLS sets the TLS configuration, for a private certificate authority.
func TLS(t *tls.Config) Option { return func(c *config) { c.tls = t } }

const (
	defaultAttempts = 10
	defaultSessions = 1
)

// New makes a client of the server at url, for example
// "http://127.0.0.1:7600", with an API key kl_<id>_<secret>. It connects with
// the first call; a malformed url is refused by every call.
func New(url, key string, opts ...Option) *Client {
	cfg := config{attempts: defaultAttempts, sessions: defaultSessions}
	for _, o := range opts {
		o(&cfg)
	}
	c := &Client{url: strings.TrimRight(url, "/"), key: key, attempts: cfg.attempts, badURL: checkURL(url)}
	c.Calls = CallsOf(c)
	c.closing, c.stop = context.WithCancel(context.Background())
	c.plain = &plain{c.url, key, transport(cfg.tls), c.closing}
	for range cfg.sessions {
		c.lines = append(c.lines, newLine(c, cfg.tls))
	}
	return c
}

func checkURL(text string) *fault.Error {
	u, err := url.Parse(text)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	return fault.New(fault.Validation, "url", "the server's URL must look like http://127.0.0.1:7600")
}

// Do evaluates one operation. It is what the typed calls use: req is complete
// and resp points to the operation's response type. Errors are *fault.Error;
// where ctx ended the call they also match its error.
//
// What the error says may be repeated with the same id is repeated, with growing
// pauses, until the attempts or ctx end. A command that may have happened ends
// with UnknownWriteOutcome, never with a guess.
func (c *Client) Do(ctx context.Context, op *api.Operation, req, resp any) error {
	if c.badURL != nil {
		return c.badURL
	}
	body, err := wire.EncodeCBOR(req)
	if err != nil {
		return fault.New(fault.Validation, "unencodable", "the request cannot be encoded")
	}
	if len(body) > maxBody {
		return fault.New(fault.Validation, "body_too_large", "the request has more than %d bytes", maxBody).
			With("limit", "body").With("maxBytes", "%d", maxBody)
	}
	r := request{op: op, body: body}
	if cmd, ok := req.(api.CommandRequest); ok && op.Writes() {
		r.id = cmd.GetCommandID()
	}
	return c.retry(ctx, r, resp)
}

// maxBody is the contract's limit of a request body, checked here so that a
// request that must be refused is not sent.
const maxBody = 8 << 20

// request is one encoded request.
type request struct {
	op   *api.Operation
	body []byte
	id   string // command id, "" for queries
}

// once tries a request once, over a session if there is one.
func (c *Client) once(ctx context.Context, r request, resp any) error {
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	if c.closing.Err() != nil {
		return errClosed()
	}
	for _, l := range c.pick() {
		s, f := l.session(ctx)
		if f != nil {
			return f
		}
		if s != nil {
			return s.call(ctx, r, resp)
		}
	}
	return c.plain.call(ctx, r, resp)
}

// pick is the line with the fewest calls in flight; empty without sessions.
func (c *Client) pick() []*line {
	if len(c.lines) <= 1 {
		return c.lines
	}
	best, least := 0, c.lines[0].load()
	for i, l := range c.lines[1:] {
		if n := l.load(); n < least {
			best, least = i+1, n
		}
	}
	return c.lines[best : best+1]
}

// Close ends the sessions and waits for the client's goroutines. Calls in flight
// end with an error; for a command that was sent it is UnknownWriteOutcome.
func (c *Client) Close() error {
	c.closed.Do(func() {
		c.stop()
		for _, l := range c.lines {
			l.close()
		}
		c.plain.transport.CloseIdleConnections()
	})
	return nil
}

func errClosed() *fault.Error {
	return fault.New(fault.Cancelled, "client_closed", "the client is closed; nothing was sent").WithRetry(fault.RetryNever)
}

// transport is tuned for many small requests to one server.
func transport(t *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: t, DialContext: dialer.DialContext,
		MaxIdleConns: idleConnections, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTime,
		TLSHandshakeTimeout: dialTime, DisableCompression: true, ExpectContinueTimeout: askTime, WriteBufferSize: 32 << 10, ReadBufferSize: 32 << 10,
	}
}
