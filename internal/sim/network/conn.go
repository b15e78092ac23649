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

	once   sync.Once
	closed chan struct{}

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
	ctx, cancel := context.WithCancel(context.Background())
	if !until.IsZero() {
		ctx, cancel = context.WithDeadline(context.Background(), until)
	}
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-c.closed:
			cancel()
		case <-stop:
		}
	}()
	switch err := c.network.pass(ctx, w); err {
	case nil:
		return nil
	case context.DeadlineExceeded:
		return os.ErrDeadlineExceeded
	default:
		return net.ErrClosed
	}
}

// Close ends what waits, too. A direction that is cut does not carry the news.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.network.mu.Lock()
		delete(c.network.conns, c)
		c.network.mu.Unlock()
	})
	return c.Conn.Close()
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
