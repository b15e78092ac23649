package httpgw

import (
	"net"
	"sync"
	"sync/atomic"
)

// connections counts those that are open.
type connections struct {
	max  int64
	open atomic.Int64
}

func (c *connections) count() int { return int(c.open.Load()) }

// bounded is a listener that closes at once what is too many: whoever connects learns
// it now, and not after a wait in line.
type bounded struct {
	net.Listener
	conns *connections
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.conns.open.Add(1) <= b.conns.max {
			return &counted{Conn: conn, conns: b.conns}, nil
		}
		b.conns.open.Add(-1)
		_ = conn.Close()
	}
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	conns *connections
	once  sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.conns.open.Add(-1) })
	return c.Conn.Close()
}
