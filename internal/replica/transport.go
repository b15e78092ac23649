package replica

import (
	"context"
	"io"
)

// MessageBytes bounds a message: an entry with one command of the largest size
// after it was nearly full, and what frames it.
const MessageBytes = 16 << 20

// messageRoom is for what a message has beside its one entry.
const messageRoom = 64 << 10

// Transport carries what the replicas of a shard say to each other. Nodes are
// named by their ids, which are never 0 and never given out twice. What a message
// holds is this package's own affair. It is used until Log.Close has returned.
type Transport interface {
	// Send hands on a message and never blocks: it may wait in a queue, be lost, come
	// twice, or be overtaken. The slice is the transport's from here on. Where messages
	// to a node are dropped, Receiver.Unreachable is told.
	Send(to uint64, shard uint16, message []byte)
	// SendSnapshot streams all of r to a node, on its own connection, and returns when
	// Receiver.ReceiveSnapshot there has returned nil; an error says that it did not, or
	// that nobody knows. It ends with ctx, and by itself when nothing moves for long.
	SendSnapshot(ctx context.Context, to uint64, shard uint16, r io.Reader) error
}

// Receiver is what a transport hands incoming traffic to; Log is one. Traffic that
// comes before the log is open or after it is closed is dropped by the transport or
// here. The transport vouches that from is the node that sent it. Safe for
// concurrent use.
type Receiver interface {
	// Receive takes one message, of at most MessageBytes, and never blocks. The slice
	// is the receiver's from here on.
	Receive(from uint64, shard uint16, message []byte)
	// ReceiveSnapshot reads a stream to its end and returns nil once all of it is on
	// disk and verified. It blocks meanwhile, and ends with ctx.
	ReceiveSnapshot(ctx context.Context, from uint64, shard uint16, r io.Reader) error
	// Unreachable is told that messages to a node were lost: its connection is gone, or
	// its queue was full. It never blocks.
	Unreachable(node uint64)
}
