package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// maxGreetings is how many connections may be in their handshake at once.
const maxGreetings = 64

const (
	cannotConnect  = "cannot connect to a node"
	refusedConn    = "a connection was refused"
	connectionLost = "a connection was lost"
)

// accept takes connections until the mesh is closed.
func (m *Mesh) accept() {
	greetings := make(chan struct{}, maxGreetings)
	wait := m.o.Times.backoff()
	for {
		raw, err := m.listener.Accept()
		if m.ctx.Err() != nil {
			if err == nil {
				_ = raw.Close()
			}
			return
		}
		if err != nil { // too many open files, for one
			m.log.warn("cannot accept connections of other nodes", "", err)
			wait.pause(m.ctx, nil)
			continue
		}
		wait.reset()
		greetings <- struct{}{}
		spawned := m.spawn(func() {
			l, h, err := m.o.receive(m.ctx, raw)
			<-greetings
			if err != nil {
				_ = raw.Close()
				if m.ctx.Err() == nil {
					m.log.warn(refusedConn, hostOf(raw), err, "from", raw.RemoteAddr().String())
				}
				return
			}
			m.serve(l, h)
		})
		if !spawned {
			_ = raw.Close()
			return
		}
	}
}

// hostOf names the machine of a connection; its port changes with every attempt.
func hostOf(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return host
}

// receive does the handshake of an incoming connection and reads the hello.
func (o *Options) receive(ctx context.Context, raw net.Conn) (*link, hello, error) {
	var h hello
	limited, cancel := context.WithTimeout(ctx, o.Times.DialTime)
	defer cancel()
	conn := tls.Server(raw, &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return o.config(x509.ExtKeyUsageClientAuth, 0)
	}})
	if err := conn.HandshakeContext(limited); err != nil {
		return nil, h, handshakeError(err)
	}
	name, err := nameOf(conn.ConnectionState().PeerCertificates[0])
	if err != nil {
		return nil, h, err
	}
	if err := raw.SetDeadline(time.Now().Add(o.Times.DialTime)); err != nil {
		return nil, h, err
	}
	l := newLink(ctx, raw, conn, o.largest())
	l.name = name
	if err := l.readGreeting(kindHello, &h); err != nil {
		l.close(err)
		return nil, h, fmt.Errorf("%s: %w", name, err)
	}
	return l, h, nil
}

// serve welcomes who has said hello, or says why not, and serves the connection
// until it ends.
func (m *Mesh) serve(l *link, h hello) {
	why := m.o.refusal(h, l.name)
	var n *node
	if why == "" {
		if n = m.heard(l.name.Node, h.Address); n == nil {
			why = errRemoved.Error()
		}
	}
	if why == "" && h.Use == forSnapshot {
		select {
		case m.receiving <- struct{}{}:
			defer func() { <-m.receiving }()
		default:
			why = fmt.Sprintf("it receives %d snapshots already", cap(m.receiving))
		}
	}
	if why != "" {
		m.log.warn(refusedConn, l.name.String(), errors.New(why), "from", l.raw.RemoteAddr().String(), "node", l.name.Node)
		l.refuse(why)
		return
	}
	stop := context.AfterFunc(n.ctx, func() { l.close(context.Cause(n.ctx)) })
	defer stop()
	if err := l.writeGreeting(kindWelcome, welcome{Version: min(h.Version, version), Address: m.o.Advertise}); err != nil {
		l.close(err)
		return
	}
	var err error
	switch h.Use {
	case forMessages:
		err = n.takeMessages(m, l)
	case forSnapshot:
		err = takeSnapshot(m, l)
	case forCalls:
		err = serveCalls(m, l)
	}
	l.close(err)
	if errors.Is(err, errProtocol) {
		m.log.warn(connectionLost, l.name.String()+h.Use.String(), err, "node", l.name.Node, "use", h.Use.String())
	}
}

// refuse tells the other side why, and gives it time to read it.
func (l *link) refuse(why string) {
	if err := l.writeGreeting(kindWelcome, welcome{Version: version, Refusal: why}); err == nil {
		_ = l.conn.CloseWrite()
		_, _ = l.in.Next() // ends when the other side has read it, at the deadline at the latest
	}
	l.close(&refusedError{why})
}
