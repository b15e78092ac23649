package peer

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
)

// node is what the mesh knows of another node. Its fields, up to the queue, are
// under the mesh's lock.
type node struct {
	id      uint64
	set     string // by Set
	address string // in use: by Set, or learned since from the node itself
	removed bool
	inbound *link // for its messages

	ctx    context.Context // ends when the node is removed
	cancel context.CancelCauseFunc
	// route ends when the address changes.
	route    context.Context
	endRoute context.CancelCauseFunc

	mail    *outbox       // messages for it
	kick    chan struct{} // it has something to say, or was heard of
	up      atomic.Bool   // messages have a connection
	dropped atomic.Uint64 // messages to it

	callers []*caller
	turn    atomic.Uint32 // of the callers
}

// Set says at which address (host:port) a node is reached. A node may say itself,
// later, that it is elsewhere. A node that was removed stays so.
func (m *Mesh) Set(id uint64, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.entry(id); n != nil && n.set != address {
		n.set = address
		n.move(address)
	}
}

// Remove ends the connections with a node, for good: its id is not used again. It
// need not be known.
func (m *Mesh) Remove(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.entry(id); n != nil && !n.removed {
		n.removed = true
		n.mail.setDown(true)
		n.mail.close()
		n.cancel(errRemoved)
	}
}

// entry finds a node, or makes its entry; nil for this node itself, and when the
// mesh is closed. The lock is held.
func (m *Mesh) entry(id uint64) *node {
	n := m.nodes[id]
	if n != nil || id == 0 || id == m.o.Node || m.closed {
		return n
	}
	n = &node{id: id, mail: newOutbox(m.o.Bounds.QueueBytes, m.o.Bounds.QueueMessages), kick: make(chan struct{}, 1)}
	n.ctx, n.cancel = context.WithCancelCause(m.ctx)
	n.route, n.endRoute = context.WithCancelCause(n.ctx)
	for range m.o.Bounds.CallLinks {
		n.callers = append(n.callers, &caller{})
	}
	m.nodes[id] = n
	m.wg.Go(func() { n.carry(m) })
	return n
}

// move changes the address in use; connections to the old one end. The mesh's lock
// is held.
func (n *node) move(address string) {
	if n.address == address {
		return
	}
	if n.address != "" {
		n.endRoute(errMoved)
		n.route, n.endRoute = context.WithCancelCause(n.ctx)
	}
	n.address = address
	n.hurry()
}

// hurry ends a pause between attempts to connect.
func (n *node) hurry() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// heard notes what a node said of itself in a greeting. It is nil for a node that
// was removed.
func (m *Mesh) heard(id uint64, address string) *node {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.entry(id)
	if n == nil || n.removed {
		return nil
	}
	if address != "" {
		n.move(address)
	}
	n.hurry()
	return n
}

// find is a node that can be talked to, its address, and the context of what is
// said to it there.
func (m *Mesh) find(id uint64) (n *node, address string, route context.Context, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = m.nodes[id]
	switch {
	case m.closed:
		return nil, "", nil, errClosed
	case n != nil && n.removed:
		return nil, "", nil, errRemoved
	case n == nil || n.address == "":
		return nil, "", nil, errNoAddress
	}
	return n, n.address, n.route, nil
}

// NodeStatus is how things stand with another node.
type NodeStatus struct {
	Node      uint64
	Address   string
	Removed   bool
	Connected bool   // messages can be sent to it
	Waiting   int    // messages that wait for it
	Dropped   uint64 // messages to it that were dropped since Open
}

// Status lists the nodes that are known, by their ids.
func (m *Mesh) Status() []NodeStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []NodeStatus
	for _, n := range m.nodes {
		waits, _ := n.mail.depth()
		all = append(all, NodeStatus{
			Node: n.id, Address: n.address, Removed: n.removed, Connected: n.up.Load(), Waiting: waits, Dropped: n.dropped.Load(),
		})
	}
	slices.SortFunc(all, func(a, b NodeStatus) int { return cmp.Compare(a.Node, b.Node) })
	return all
}
