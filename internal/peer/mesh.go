package peer

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyload/keyload/fault"
)

var (
	errClosed  = errors.New("this node stops")
	errRemoved = errors.New("the node was removed from the cluster")
	errMoved   = errors.New("the node has another address now")
	errNewer   = errors.New("the node has connected again")

	errNoAddress = errors.New("its address is not known")
)

// expiresSoon is how long before its end a certificate is complained of.
const expiresSoon = 30 * 24 * time.Hour

// Mesh is this node's end of what the nodes of a cluster say to each other. It is
// safe for concurrent use.
type Mesh struct {
	o        Options
	listener net.Listener

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc

	receiver atomic.Pointer[attached]
	log      complaints
	lost     tidings

	sending, receiving chan struct{} // a slot per snapshot

	mu     sync.Mutex
	nodes  map[uint64]*node
	closed bool
	wg     sync.WaitGroup
}

// attached is what gets incoming traffic.
type attached struct {
	receiver Receiver
	handler  Handler
}

// Open listens, and begins to answer: calls and snapshots are refused, and
// messages dropped, until Attach. Errors are Validation (credentials, listen) or
// Conflict (address_in_use).
func Open(o Options) (*Mesh, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	var until time.Time
	own, err := o.Credentials()
	if err == nil {
		until, err = own.check(Name{o.Cluster, o.Node}, time.Now())
	}
	if err != nil {
		return nil, fault.New(fault.Validation, "credentials", "%v", err)
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, listenFault(err)
	}
	if o.Advertise == "" {
		o.Advertise = l.Addr().String()
	}
	m := &Mesh{
		o: o, listener: l, nodes: map[uint64]*node{},
		sending: make(chan struct{}, o.Bounds.Snapshots), receiving: make(chan struct{}, o.Bounds.Snapshots),
	}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.receiver.Store(&attached{})
	m.log.out = o.Log
	m.lost.wake = make(chan struct{}, 1)
	o.Log.Info("listening for other nodes", "cluster", o.Cluster, "node", o.Node, "address", m.Addr(),
		"advertised", o.Advertise, "certificateUntil", until.UTC())
	if time.Until(until) < expiresSoon {
		o.Log.Warn("this node's certificate expires soon; replace its files, which are read again while the node runs", "at", until.UTC())
	}
	m.spawn(m.accept)
	m.spawn(func() { m.lost.tell(m) })
	return m, nil
}

// Node is the id of this node.
func (m *Mesh) Node() uint64 { return m.o.Node }

// Addr is the address that is listened on.
func (m *Mesh) Addr() string { return m.listener.Addr().String() }

// Attach says who gets messages and snapshots, and who answers calls. Either may
// be nil: then they are dropped or refused. What has begun goes on.
func (m *Mesh) Attach(r Receiver, h Handler) { m.receiver.Store(&attached{r, h}) }

// Close ends every connection and waits for everything that was begun, handlers
// included.
func (m *Mesh) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel(errClosed)
	err := m.listener.Close()
	m.wg.Wait()
	if errors.Is(err, net.ErrClosed) { // closed before
		err = nil
	}
	return err
}

// spawn runs f in a goroutine that Close waits for, or says that it is too late.
func (m *Mesh) spawn(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.wg.Go(f)
	return true
}
