package peer

import (
	"fmt"
	"time"
)

// Send queues a message for a node and never blocks. It may be lost, come twice,
// or be overtaken. The slice is the mesh's from here on. Where a message is
// dropped, Receiver.Unreachable is told.
func (m *Mesh) Send(to uint64, shard uint16, message []byte) {
	m.mu.Lock()
	n := m.nodes[to]
	m.mu.Unlock()
	if len(message) > m.o.Bounds.MessageBytes {
		m.log.warn("a message is too large to be sent", fmt.Sprint(to),
			fmt.Errorf("%d bytes, at most %d", len(message), m.o.Bounds.MessageBytes), "node", to, "shard", shard)
	} else if n != nil && n.mail.offer(&parcel{kind: kindMessage, id: uint32(shard), body: message}) {
		return
	}
	if n != nil {
		n.dropped.Add(1)
	}
	m.lost.add(to)
}

// carry keeps a connection for messages to a node, until it is removed or the mesh
// closed.
func (n *node) carry(m *Mesh) {
	wait := m.o.Times.backoff()
	about := fmt.Sprint(n.id)
	for {
		_, address, route, err := m.find(n.id)
		if err != nil {
			select {
			case <-n.kick: // an address, perhaps
				continue
			case <-n.ctx.Done():
				return
			}
		}
		l, err := m.dial(route, address, n.id, forMessages)
		if err != nil {
			n.undeliverable(m)
			if n.ctx.Err() != nil {
				return
			}
			if route.Err() == nil {
				m.log.warn(cannotConnect, about, err, "node", n.id, "address", address)
			}
			if !wait.pause(n.ctx, n.kick) {
				return
			}
			n.mail.setDown(false)
			continue
		}
		m.log.over(cannotConnect, about)
		m.o.Log.Info("connected to a node", "node", n.id, "address", address)
		began := time.Now()
		err = n.deliver(m, l)
		if n.ctx.Err() != nil {
			return
		}
		m.log.warn(connectionLost, about, err, "node", n.id, "address", address)
		// What the connection had taken may be lost; what still waits is for the next.
		m.lost.add(n.id)
		if time.Since(began) > m.o.Times.BackoffMax {
			wait.reset()
		} else if !wait.pause(n.ctx, nil) { // it may go on like this
			return
		}
	}
}

// deliver sends what waits until the connection ends; it says why.
func (n *node) deliver(m *Mesh, l *link) error {
	defer l.close(nil)
	if !l.start(n.mail, m.o.Times, m.spawn) {
		return errClosed
	}
	n.up.Store(true)
	defer n.up.Store(false)
	h, err := l.next() // nothing but pings comes
	if err == nil {
		err = unexpected(h)
	}
	l.close(err)
	<-l.flushed // before another connection takes from the same queue
	return firstOf(l.ctx, err)
}

// undeliverable drops what waits for a node that cannot be reached.
func (n *node) undeliverable(m *Mesh) {
	if dropped := n.mail.setDown(true); dropped > 0 {
		n.dropped.Add(uint64(dropped))
		m.lost.add(n.id)
	}
}

// takeMessages hands on what a node sends.
func (n *node) takeMessages(m *Mesh, l *link) error {
	if !l.start(newOutbox(1, 1), m.o.Times, m.spawn) {
		return errClosed
	}
	m.mu.Lock()
	older := n.inbound
	n.inbound = l
	m.mu.Unlock()
	if older != nil { // the node was started again, or cut off
		older.close(errNewer)
	}
	for {
		h, err := l.next()
		if err != nil {
			return err
		}
		if h.Kind != kindMessage || h.ID > 1<<16-1 || h.Size > m.o.Bounds.MessageBytes {
			return unexpected(h)
		}
		message, err := l.body(h)
		if err != nil {
			return err
		}
		if r := m.receiver.Load().receiver; r != nil {
			r.Receive(l.name.Node, uint16(h.ID), message)
		}
	}
}
