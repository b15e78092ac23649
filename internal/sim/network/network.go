package network

import (
	"context"
	"net"
	"sync"
	"time"
)

// Network knows who listens where. It is safe for concurrent use.
type Network struct {
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu    sync.Mutex
	names map[string]string // address → node
	ways  map[way]*gate
	conns map[*conn]struct{}
}

// way is one direction between two nodes.
type way struct{ from, to string }

// gate is the state of one direction.
type gate struct {
	open  chan struct{} // closed while the direction carries
	delay time.Duration
}

// New is a network on which everything arrives at once.
func New() *Network {
	n := &Network{names: map[string]string{}, ways: map[way]*gate{}, conns: map[*conn]struct{}{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Close closes what a cut direction still held open.
func (n *Network) Close() { n.cancel() }

// Name says which node listens at an address (host:port).
func (n *Network) Name(address, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[address] = node
}

// Dialer is how a node opens connections.
func (n *Network) Dialer(from string) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		n.mu.Lock()
		to := n.names[address]
		n.mu.Unlock()
		there, back := way{from, to}, way{to, from}
		for _, w := range []way{there, back} { // a handshake needs both directions
			if err := n.pass(ctx, w); err != nil {
				return nil, err
			}
		}
		var d net.Dialer
		inner, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, network: n, there: there, back: back}
		c.ctx, c.cancel = context.WithCancel(context.Background())
		n.mu.Lock()
		n.conns[c] = struct{}{}
		n.mu.Unlock()
		return c, nil
	}
}

// Cut holds back everything that goes from one node to another, of connections
// that either has opened.
func (n *Network) Cut(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.gate(way{from, to})
	select {
	case <-g.open:
		g.open = make(chan struct{})
	default:
	}
}

// Mend lets it go on.
func (n *Network) Mend(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.gate(way{from, to})
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// Delay makes everything from one node to another arrive so much later.
func (n *Network) Delay(from, to string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gate(way{from, to}).delay = d
}

// Break closes every connection between two nodes.
func (n *Network) Break(a, b string) {
	n.mu.Lock()
	var broken []*conn
	for c := range n.conns {
		if c.there == (way{a, b}) || c.back == (way{a, b}) {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	for _, c := range broken {
		_ = c.Close()
	}
}

// forget says whether the connection was open.
func (n *Network) forget(c *conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, open := n.conns[c]
	delete(n.conns, c)
	return open
}

// gate finds the state of a direction. The lock is held.
func (n *Network) gate(w way) *gate {
	g := n.ways[w]
	if g == nil {
		g = &gate{open: make(chan struct{})}
		close(g.open)
		n.ways[w] = g
	}
	return g
}

// pass waits until the direction carries, and for its delay.
func (n *Network) pass(ctx context.Context, w way) error {
	var delay time.Duration
	for {
		n.mu.Lock()
		g := n.gate(w)
		open := g.open
		delay = g.delay
		n.mu.Unlock()
		select {
		case <-open:
		case <-ctx.Done():
			return ctx.Err()
		}
		n.mu.Lock()
		same := g.open == open
		n.mu.Unlock()
		if same { // else it was cut again
			break
		}
	}
	if delay == 0 {
		return nil
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
