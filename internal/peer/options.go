package peer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"
)

// Receiver gets what other nodes send. Its methods are safe for concurrent use.
type Receiver interface {
	// Receive takes one message and never blocks. The slice is the receiver's from
	// here on. from is who its certificate says.
	Receive(from uint64, shard uint16, message []byte)
	// ReceiveSnapshot reads a stream to its end and returns nil once all of it is
	// kept. A stream that was cut off ends with an error that is not io.EOF.
	ReceiveSnapshot(ctx context.Context, from uint64, shard uint16, r io.Reader) error
	// Unreachable is told that messages to a node were lost. It never blocks.
	Unreachable(node uint64)
}

// Handler answers a call of another node. ctx ends with the caller's, with its
// connection, and at its deadline. An error that is a *fault.Error is what the
// caller gets; for any other the caller is told ErrLost. The body is the handler's.
type Handler func(ctx context.Context, from uint64, kind byte, body []byte) ([]byte, error)

// Options say who a node is and how it speaks.
type Options struct {
	// Cluster and Node must be those of the certificate.
	Cluster string
	Node    uint64
	// Listen is host:port; port 0 picks a free one.
	Listen string
	// Advertise is host:port at which other nodes reach this one; empty: the
	// address that is listened on.
	Advertise string
	// Credentials is asked at every handshake, so that certificates can be
	// replaced while the node runs.
	Credentials func() (Credentials, error)
	// Log gets a record for every connection that was made, lost or refused; for
	// those that fail again and again, one a minute.
	Log *slog.Logger
	// Dial opens a connection to an address; nil: over TCP. Tests put a faulty
	// network here.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	Bounds Bounds
	Times  Times
}

// Bounds are how much a node holds for others. What is 0 is what is said here.
type Bounds struct {
	MessageBytes  int // largest message: 16 MiB
	QueueBytes    int // of messages that wait for one node: 64 MiB
	QueueMessages int // that wait for one node: 65,536
	CallBytes     int // largest body of a call, and of its answer: 16 MiB
	CallQueue     int // bytes of calls that wait for one connection: 64 MiB
	CallsServed   int // in evaluation at once, of one connection: 65,536
	CallsBytes    int // of their bodies together: 256 MiB
	CallLinks     int // connections for calls to one node: 1
	Snapshots     int // streams at once, each way: 2
	SnapshotRate  int // bytes a second of each that is sent; 0: as fast as it goes
}

// Times are how long a node waits. What is 0 is what is said here.
type Times struct {
	PingEvery  time.Duration // a sign of life on a quiet connection: 1 s
	IdleAfter  time.Duration // a connection without one is given up: 5 s
	DialTime   time.Duration // to connect and be welcome: 3 s
	StallAfter time.Duration // a snapshot of which nothing moves is given up: 5 min
	BackoffMin time.Duration // before the second attempt to connect: 50 ms
	BackoffMax time.Duration // before the attempts after many: 1 s
}

func (o *Options) complete() error {
	for _, n := range []struct {
		v     *int
		usual int
	}{
		{&o.Bounds.MessageBytes, 16 << 20}, {&o.Bounds.QueueBytes, 64 << 20}, {&o.Bounds.QueueMessages, 65_536},
		{&o.Bounds.CallBytes, 16 << 20}, {&o.Bounds.CallQueue, 64 << 20}, {&o.Bounds.CallsServed, 65_536},
		{&o.Bounds.CallsBytes, 256 << 20}, {&o.Bounds.CallLinks, 1}, {&o.Bounds.Snapshots, 2},
	} {
		if *n.v == 0 {
			*n.v = n.usual
		}
	}
	for _, d := range []struct {
		v     *time.Duration
		usual time.Duration
	}{
		{&o.Times.PingEvery, time.Second}, {&o.Times.IdleAfter, 5 * time.Second}, {&o.Times.DialTime, 3 * time.Second},
		{&o.Times.StallAfter, 5 * time.Minute},
		{&o.Times.BackoffMin, 50 * time.Millisecond}, {&o.Times.BackoffMax, time.Second},
	} {
		if *d.v == 0 {
			*d.v = d.usual
		}
	}
	if o.Dial == nil {
		var d net.Dialer
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
	}
	switch {
	case o.Node == 0 || o.Cluster == "" || o.Credentials == nil || o.Log == nil:
		return errors.New("peer: Node, Cluster, Credentials and Log are required")
	case o.Bounds.QueueBytes < o.Bounds.MessageBytes || o.Bounds.CallQueue < o.Bounds.CallBytes:
		return errors.New("peer: a queue must hold the largest message")
	case o.Times.IdleAfter < 2*o.Times.PingEvery:
		return errors.New("peer: IdleAfter must be twice PingEvery at least")
	}
	return nil
}

// largest is the largest body of any frame that another node may send.
func (o *Options) largest() int {
	return max(o.Bounds.MessageBytes, o.Bounds.CallBytes+callHead, chunkBytes, maxGreeting)
}
