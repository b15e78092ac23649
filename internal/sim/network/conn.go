package network

import (
	"context"
	"net"
	"os"
	"sync"
	"time"
)

// conn is a connection whose bytes pass the gates of its two directions.
type conn struct {
	net.Conn
	network     *Network
	there, back way

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu          sync.Mutex
	read, write time.Time // deadlines

	held []byte // read, and not yet passed on; of the reading goroutine
	err  error  // after them
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.pass(c.there, &c.write); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	if len(c.held) == 0 && c.err == nil {
		buf := make([]byte, max(len(b), 1))
		n, err := c.Conn.Read(buf)
		if c.ctx.Err() != nil {
			return 0, net.ErrClosed
		}
		if n == 0 && os.IsTimeout(err) {
			return 0, err
		}
		c.held, c.err = buf[:n], err
	}
	if err := c.pass(c.back, &c.read); err != nil {
		return 0, err
	}
	n := copy(b, c.held)
	c.held = c.held[n:]
	if n == 0 {
		return 0, c.err
	}
	return n, nil
}

// pass waits at the gate of a direction, as long as the connection and the
// deadline last.
func (c *conn) pass(w way, deadline *time.Time) error {
	c.mu.Lock()
	until := *deadline
	c.mu.Unlock()
	ctx := c.ctx
	if !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	switch err := c.network.pass(ctx, w); {
	case err == nil:
		return nil
	case c.ctx.Err() != nil:
		return net.ErrClosed
	default:
		return os.ErrDeadlineExceeded
	}
}

// Close ends what waits, too. The other side learns of it when the direction to it
// carries again.
func (c *conn) Close() error {
	c.cancel()
	if !c.network.forget(c) {
		return net.ErrClosed
	}
	_ = c.Conn.SetDeadline(time.Unix(1, 0)) // ends what reads and writes
	go func() {
		_ = c.network.pass(c.network.ctx, c.there)
		_ = c.Conn.Close()
	}()
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.read, c.write = t, t
	c.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.read = t
	c.mu.Unlock()
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.write = t
	c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}
