package httpgw

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerTime = 10 * time.Second
	// requestTime bounds reading a request with its body.
	requestTime = 2 * time.Minute
	// answerTime bounds evaluating and answering a request: the longest wait of
	// a read or receive is a small part of it.
	answerTime = 2 * time.Minute
	keepTime   = 2 * time.Minute // of an idle connection
	// drainTime is what calls in flight get at a shutdown before those that wait
	// for a message or event are ended.
	drainTime      = time.Second
	maxHeaderBytes = 64 << 10
)

// ListenOptions say where a server listens.
type ListenOptions struct {
	// Addr is host:port. Without a certificate only loopback addresses are
	// allowed: keys and payloads would travel in the clear.
	Addr string
	// CertFile and KeyFile are PEM files; TLS is on when both are given.
	CertFile, KeyFile string
	// AllowInsecure lets a server without a certificate listen anywhere, behind
	// something that ends TLS.
	AllowInsecure bool
}

// Server is a gateway that listens.
type Server struct {
	gateway  *Gateway
	http     *http.Server
	listener net.Listener // bounded
	tls      bool
}

// Listen binds the address; Serve answers. An error says what to change.
func Listen(g *Gateway, o ListenOptions) (*Server, error) {
	secure := o.CertFile != "" || o.KeyFile != ""
	addr, err := net.ResolveTCPAddr("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("the address %q cannot be listened on: %w", o.Addr, err)
	}
	if !secure && !o.AllowInsecure && !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address and there is no TLS certificate: "+
			"give a certificate and its key, or allow insecure connections", o.Addr)
	}
	var config *tls.Config
	if secure {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("the TLS certificate cannot be read: %w", err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("the address %q cannot be listened on: %w", o.Addr, err)
	}
	return &Server{
		gateway: g, listener: &bounded{listener, &g.conns}, tls: secure,
		http: &http.Server{
			Handler: g, TLSConfig: config, MaxHeaderBytes: maxHeaderBytes,
			ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: keepTime,
			ErrorLog:    slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
			BaseContext: func(net.Listener) context.Context { return g.serving },
		},
	}, nil
}

// URL is where the server is reached; the port is the real one also when port 0
// was asked for.
func (s *Server) URL() string {
	scheme := "http://"
	if s.tls {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String()
}

// Serve answers requests until Shutdown, which makes it return nil.
func (s *Server) Serve() error {
	var err error
	if s.tls {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown takes no new work, lets commands in flight finish, ends what waits
// for messages or events, and closes every connection. When ctx ends first it
// closes them at once and returns the context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.gateway.endTails()
	s.gateway.sessions.drain()
	timer := time.AfterFunc(drainTime, s.gateway.stop)
	defer timer.Stop()
	err := s.http.Shutdown(ctx)
	if e := s.gateway.sessions.wait(ctx); err == nil {
		err = e
	}
	s.gateway.stop()
	if err != nil {
		_ = s.http.Close()
		s.gateway.sessions.close()
	}
	return err
}
