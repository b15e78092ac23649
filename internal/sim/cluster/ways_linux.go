package cluster

import (
	"net"
	"sync"
	"time"
)

// ways are the ways between nodes: everything that one says to another passes here,
// whichever of the two has dialed. Nodes are numbered from 0.
type ways struct {
	pids func() []int // of the nodes, 0 for one that does not run

	mu     sync.Mutex
	ways   map[[2]int]*way
	conns  map[net.Conn]bool
	closed bool

	listeners []net.Listener
	running   sync.WaitGroup
}

// way is one direction between two nodes.
type way struct {
	open  chan struct{} // closed while bytes pass
	delay time.Duration // of each chunk
}

func newWays(pids func() []int) *ways {
	return &ways{pids: pids, ways: map[[2]int]*way{}, conns: map[net.Conn]bool{}}
}

// outside is who dials and is no node.
const outside = -1

// lead passes everything that comes to an address on to a node.
func (w *ways) lead(address string, to int, target string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	w.listeners = append(w.listeners, l)
	w.running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			if !w.keep(near) {
				return
			}
			w.running.Go(func() { w.carry(near, to, target) })
		}
	})
	return nil
}

// keep notes a connection, so that it can be closed; false when everything ends.
func (w *ways) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		_ = c.Close()
		return false
	}
	w.conns[c] = true
	return true
}

func (w *ways) drop(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		delete(w.conns, c)
		_ = c.Close()
	}
}

// carry passes bytes in both directions until one side ends.
func (w *ways) carry(near net.Conn, to int, target string) {
	from := outside
	pids := w.pids()
	if pid := ownerOf(near, pids); pid != 0 {
		for i, p := range pids {
			if p == pid {
				from = i
			}
		}
	}
	if !w.pass(from, to) { // a connection is not made while its way is cut
		w.drop(near)
		return
	}
	far, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil || !w.keep(far) {
		w.drop(near)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { w.copy(far, near, from, to); w.drop(near, far) })
	both.Go(func() { w.copy(near, far, to, from); w.drop(near, far) })
	both.Wait()
}

// copy passes what one node says to another, when its way is open.
func (w *ways) copy(dst, src net.Conn, from, to int) {
	b := make([]byte, 64<<10)
	for {
		n, err := src.Read(b)
		if err != nil || !w.pass(from, to) {
			return
		}
		if _, err := dst.Write(b[:n]); err != nil {
			return
		}
	}
}

// pass waits until the way is open, and as long as it delays; false at the end.
func (w *ways) pass(from, to int) bool {
	w.mu.Lock()
	x := w.way(from, to)
	open, delay := x.open, x.delay
	w.mu.Unlock()
	<-open
	if delay > 0 {
		<-time.After(delay)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.closed
}

// way finds one direction. The lock is held.
func (w *ways) way(from, to int) *way {
	x := w.ways[[2]int{from, to}]
	if x == nil {
		x = &way{open: make(chan struct{})}
		close(x.open)
		w.ways[[2]int{from, to}] = x
	}
	return x
}

// cut lets nothing pass in one direction: what is sent waits, as on a network that
// loses it and has it sent again.
func (w *ways) cut(from, to int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.way(from, to)
	select {
	case <-x.open:
		x.open = make(chan struct{})
	default:
	}
}

// heal lets everything pass again in one direction, at once.
func (w *ways) heal(from, to int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.way(from, to)
	x.delay = 0
	select {
	case <-x.open:
	default:
		close(x.open)
	}
}

// slow delays what passes in one direction.
func (w *ways) slow(from, to int, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.way(from, to).delay = delay
}

// healAll makes every way as it was.
func (w *ways) healAll() {
	w.mu.Lock()
	all := make([][2]int, 0, len(w.ways))
	for k := range w.ways {
		all = append(all, k)
	}
	w.mu.Unlock()
	for _, k := range all {
		w.heal(k[0], k[1])
	}
}

// close ends every connection and waits.
func (w *ways) close() {
	w.mu.Lock()
	w.closed = true
	for c := range w.conns {
		_ = c.Close()
	}
	w.mu.Unlock()
	for _, l := range w.listeners {
		_ = l.Close()
	}
	w.healAll()
	w.running.Wait()
}
