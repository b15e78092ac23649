package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// Client calls a server, or the servers of one cluster. It is safe for concurrent
// use; make one and keep it. It implements api.Doer.
type Client struct {
	Calls

	attempts int
	badURL   *fault.Error
	servers  []*server
	at       atomic.Uint32 // counts the moves from one server to the next
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

// Attempts sets how often a call is tried at each server, the first time included;
// 10 by default, which takes about four seconds where it is refused at once. The
// context of the call ends it earlier.
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
//
// url may be a list parted by commas, of nodes of one cluster. Calls go to one of
// them as long as it works, the first to begin with. When it cannot be reached, loses
// an answer, has no leader or has stopped, they go to the next, with pauses once all
// were tried. What is repeated there is what would be repeated here: with the same
// command id, and never what may not be.
func New(url, key string, opts ...Option) *Client {
	cfg := config{attempts: defaultAttempts, sessions: defaultSessions}
	for _, o := range opts {
		o(&cfg)
	}
	c := &Client{attempts: cfg.attempts}
	c.Calls = CallsOf(c)
	c.closing, c.stop = context.WithCancel(context.Background())
	c.servers, c.badURL = servers(c.closing, url, key, cfg)
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

// Close ends the sessions and waits for the client's goroutines. Calls in flight
// end with an error; for a command that was sent it is UnknownWriteOutcome.
func (c *Client) Close() error {
	c.closed.Do(func() {
		c.stop()
		for _, s := range c.servers {
			s.close()
		}
	})
	return nil
}

func errClosed() *fault.Error {
	return fault.New(fault.Cancelled, "client_closed", "the client is closed; nothing was sent").WithRetry(fault.RetryNever)
}

// transport is tuned for many small requests to one server.
func transport(t *tls.Config, p patience) *http.Transport {
	dialer := net.Dialer{Timeout: p.dial, KeepAlive: aliveTime}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: t, DialContext: dialer.DialContext,
		MaxIdleConns: idleConnections, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTime,
		TLSHandshakeTimeout: p.dial, DisableCompression: true, ExpectContinueTimeout: askTime, WriteBufferSize: 32 << 10, ReadBufferSize: 32 << 10,
	}
}
