package replica

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// network joins the nodes of a test. Messages are handed over at once, unless it is
// told to be worse.
type network struct {
	mu     sync.Mutex
	rng    *rand.Rand
	nodes  map[uint64]*Log // that are reachable
	cut    map[[2]uint64]bool
	loses  int           // of a hundred messages
	length time.Duration // that every message takes
	delay  time.Duration // up to which one is held up beyond that, so that others overtake it
	twice  int           // of a hundred messages
	sent   map[uint64]int
	wait   sync.WaitGroup
}

func newNetwork(seed uint64) *network {
	return &network{rng: rand.New(rand.NewPCG(seed, 9)), nodes: map[uint64]*Log{}, cut: map[[2]uint64]bool{}, sent: map[uint64]int{}}
}

var errCut = errors.New("the connection is cut")

// port is the transport of one node, until it is closed.
type port struct {
	n    *network
	from uint64
}

func (p port) Send(to uint64, shard uint16, message []byte) {
	p.n.mu.Lock()
	p.n.sent[p.from]++
	copies := 1
	if p.n.rng.IntN(100) < p.n.twice {
		copies = 2
	}
	if p.n.cut[[2]uint64{p.from, to}] || p.n.rng.IntN(100) < p.n.loses {
		copies = 0
	}
	var delays []time.Duration
	for range copies {
		d := p.n.length
		if p.n.delay > 0 {
			d += time.Duration(p.n.rng.Int64N(int64(p.n.delay)))
		}
		delays = append(delays, d)
	}
	p.n.mu.Unlock()
	for _, d := range delays {
		own := slices.Clone(message)
		if d == 0 {
			p.n.deliver(p.from, to, shard, own)
			continue
		}
		p.n.wait.Add(1)
		time.AfterFunc(d, func() {
			defer p.n.wait.Done()
			p.n.deliver(p.from, to, shard, own)
		})
	}
}

// deliver hands a message over, if both ends are still there.
func (n *network) deliver(from, to uint64, shard uint16, message []byte) {
	n.mu.Lock()
	receiver := n.nodes[to]
	if n.nodes[from] == nil || n.cut[[2]uint64{from, to}] {
		receiver = nil
	}
	n.mu.Unlock()
	if receiver != nil {
		receiver.Receive(from, shard, message)
	}
}

// watched ends a stream when its connection is cut.
type watched struct {
	n        *network
	from, to uint64
	r        io.Reader
}

func (w watched) Read(p []byte) (int, error) {
	w.n.mu.Lock()
	broken := w.n.cut[[2]uint64{w.from, w.to}] || w.n.nodes[w.from] == nil || w.n.nodes[w.to] == nil
	w.n.mu.Unlock()
	if broken {
		return 0, errCut
	}
	return w.r.Read(p)
}

func (p port) SendSnapshot(ctx context.Context, to uint64, shard uint16, r io.Reader) error {
	p.n.mu.Lock()
	receiver := p.n.nodes[to]
	p.n.mu.Unlock()
	if receiver == nil {
		return errCut
	}
	return receiver.ReceiveSnapshot(ctx, p.from, shard, watched{p.n, p.from, to, r})
}

func (n *network) plug(id uint64, l *Log) { n.mu.Lock(); defer n.mu.Unlock(); n.nodes[id] = l }
func (n *network) unplug(id uint64)       { n.mu.Lock(); defer n.mu.Unlock(); delete(n.nodes, id) }

// sever cuts what goes from one node to another, one way.
func (n *network) sever(from, to uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]uint64{from, to}] = true
}

// isolate cuts a node off, both ways.
func (n *network) isolate(id uint64, others ...uint64) {
	for _, o := range others {
		n.sever(id, o)
		n.sever(o, id)
	}
}

func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
	n.loses, n.delay, n.twice, n.length = 0, 0, 0, 0
}

// lengthen makes every way take so long at least.
func (n *network) lengthen(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.length = d
}

func (n *network) worsen(loses, twice int, delay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loses, n.twice, n.delay = loses, twice, delay
}

// snapshotMessage is what leads to the installation of a snapshot.
func snapshotMessage(from, to uint64) *pb.Message {
	return &pb.Message{
		Type: pb.MsgSnap.Enum(), From: new(from), To: new(to), Term: new(uint64(2)),
		Snapshot: snapshotOf(position{3, 2}, &pb.ConfState{Voters: []uint64{from}, Learners: []uint64{to}}),
	}
}
