package replica

import (
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"
)

// inboxBytes bounds the messages of a shard that wait for the loop. What is above it
// is dropped, and raft sends it again.
const inboxBytes = 64 << 20

// inbox is what waits for the loop. Putting something in never blocks: the loop also
// puts things in, through those it wakes.
type inbox struct {
	mu       sync.Mutex
	messages []incoming
	flights  []*flight
	calls    []func(*loop)
	bytes    map[uint16]int // of messages, by shard
	closed   bool
	wake     chan struct{}
}

type incoming struct {
	shard   uint16
	message *pb.Message
}

// mail is what the loop takes out at once.
type mail struct {
	messages []incoming
	flights  []*flight
	calls    []func(*loop)
}

func (b *inbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *inbox) message(shard uint16, m *pb.Message, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.bytes[shard]+size > inboxBytes {
		return
	}
	if b.bytes == nil {
		b.bytes = map[uint16]int{}
	}
	b.bytes[shard] += size
	b.messages = append(b.messages, incoming{shard, m})
	b.ring()
}

// flight takes a proposal; false when the loop has ended.
func (b *inbox) flight(f *flight) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.flights = append(b.flights, f)
	b.ring()
	return true
}

// call lets the loop run a function; false when it has ended.
func (b *inbox) call(fn func(*loop)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.calls = append(b.calls, fn)
	b.ring()
	return true
}

func (b *inbox) take() (m mail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m = mail{b.messages, b.flights, b.calls}
	b.messages, b.flights, b.calls = nil, nil, nil
	clear(b.bytes)
	return m
}

// close lets nothing in any more; the loop takes out what is left.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}
