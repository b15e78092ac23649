package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/keyload/keyload/fault"
)

func listenFault(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fault.New(fault.Conflict, "address_in_use", "%v; choose another address for the cluster's traffic, or stop what uses it", err)
	}
	return fault.New(fault.Validation, "listen", "%v", err)
}

// dial connects to a node and greets it; to is 0 for whichever node is at the
// address. The link ends with ctx; it does not write yet.
func (m *Mesh) dial(ctx context.Context, address string, to uint64, u use) (*link, error) {
	limited, cancel := context.WithTimeout(ctx, m.o.Times.DialTime)
	defer cancel()
	config, err := m.o.config(x509.ExtKeyUsageServerAuth, to)
	if err != nil {
		return nil, err
	}
	raw, err := m.o.Dial(limited, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, firstOf(ctx, err))
	}
	l, answered, err := m.o.introduce(ctx, limited, raw, tls.Client(raw, config), hello{Use: u, To: to})
	if err == nil && m.answered(l.name.Node, answered.Address) == nil {
		l.close(errRemoved)
		err = errRemoved
	}
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("connect to %s: %w", address, firstOf(ctx, err))
	}
	return l, nil
}

// introduce does the handshake and the greeting on a new connection.
func (o *Options) introduce(ctx, limited context.Context, raw net.Conn, conn *tls.Conn, h hello) (*link, welcome, error) {
	if err := conn.HandshakeContext(limited); err != nil {
		return nil, welcome{}, handshakeError(err)
	}
	name, err := nameOf(conn.ConnectionState().PeerCertificates[0])
	if err != nil {
		return nil, welcome{}, err
	}
	deadline, _ := limited.Deadline()
	if err := raw.SetDeadline(deadline); err != nil {
		return nil, welcome{}, err
	}
	l := newLink(ctx, raw, conn, o.largest())
	l.name = name
	h.Version, h.Node, h.Address = version, o.Node, o.Advertise
	w, err := l.greet(h)
	if err != nil {
		l.close(err)
		return nil, w, err
	}
	return l, w, nil
}

// handshakeError says who did not believe whom.
func handshakeError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" { // an alert of TLS
		return fmt.Errorf("the other side does not accept this node's certificate (its log says why): %w", err)
	}
	return err
}

// answered is heard for the side that has dialed: that knows an address that works.
func (m *Mesh) answered(id uint64, address string) *node {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.entry(id)
	if n == nil || n.removed {
		return nil
	}
	if n.address == "" && address != "" {
		n.move(address)
	}
	return n
}

// firstOf prefers why the context ended over what that made fail.
func firstOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// backoff is the pause between attempts to connect; it doubles.
type backoff struct {
	min, max, next time.Duration
}

func (t Times) backoff() backoff { return backoff{min: t.BackoffMin, max: t.BackoffMax} }

func (b *backoff) reset() { b.next = 0 }

// pause waits, for about as long as it is time to, until hurry or the end of ctx,
// of which it tells.
func (b *backoff) pause(ctx context.Context, hurry <-chan struct{}) (goOn bool) {
	b.next = min(max(2*b.next, b.min), b.max)
	t := time.NewTimer(b.next/2 + rand.N(b.next/2+1)) // apart from those that fail for the same reason
	defer t.Stop()
	select {
	case <-t.C:
	case <-hurry:
	case <-ctx.Done():
		return false
	}
	return true
}
