package peer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/peer"
	"github.com/keyload/keyload/internal/sim/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// bed is a cluster's authority and the network between its nodes.
type bed struct {
	t         *testing.T
	dir       string
	authority *cluster.Authority
	network   *network.Network
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, dir: t.TempDir(), network: network.New()}
	t.Cleanup(b.network.Close) // after the nodes: they were made later
	var err error
	if b.authority, err = cluster.MakeAuthority(b.dir, "test", time.Now()); err != nil {
		t.Fatal(err)
	}
	return b
}

// settings are those of a node, with a certificate made for it.
func (b *bed) settings(node uint64) cluster.Settings {
	b.t.Helper()
	made, err := b.authority.Issue(b.t.TempDir(), node, time.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	return cluster.Settings{
		Cluster: "test", Node: node, Listen: "127.0.0.1:0",
		CAFile: b.dir + "/" + cluster.CAFile, CertFile: made.CertFile, KeyFile: made.KeyFile,
	}
}

// member is a running node and what it got.
type member struct {
	*peer.Mesh
	*inbox
	node uint64
	log  *journal
}

func name(node uint64) string { return fmt.Sprint("node", node) }

func (b *bed) options(node uint64) peer.Options {
	s := b.settings(node)
	return peer.Options{
		Cluster: s.Cluster, Node: node, Listen: s.Listen, Credentials: s.Credentials(), Dial: b.network.Dialer(name(node)),
		Times: peer.Times{PingEvery: 50 * time.Millisecond, IdleAfter: 10 * time.Second, BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond},
	}
}

// start starts a node that knows nobody.
func (b *bed) start(node uint64, change func(*peer.Options)) *member {
	b.t.Helper()
	o := b.options(node)
	if change != nil {
		change(&o)
	}
	m := &member{node: node, log: &journal{}, inbox: newInbox()}
	o.Log = slog.New(slog.NewTextHandler(m.log, nil))
	var err error
	if m.Mesh, err = peer.Open(o); err != nil {
		b.t.Fatal(err)
	}
	b.network.Name(m.Addr(), name(node))
	m.Attach(m.inbox, m.handle)
	b.t.Cleanup(func() {
		if err := m.Close(); err != nil {
			b.t.Errorf("node %d: %v", node, err)
		}
	})
	return m
}

// pair are two nodes of which each knows the other.
func (b *bed) pair(change func(*peer.Options)) (one, two *member) {
	b.t.Helper()
	one, two = b.start(1, change), b.start(2, change)
	one.Set(2, two.Addr())
	two.Set(1, one.Addr())
	return one, two
}

// message is one that came.
type message struct {
	from  uint64
	shard uint16
	body  string
}

// inbox keeps what a node gets.
type inbox struct {
	messages    chan message
	unreachable chan uint64
	hold        atomic.Pointer[chan struct{}] // if set, Receive waits for it
	snapshot    func(ctx context.Context, from uint64, shard uint16, r io.Reader) error
	call        peer.Handler
}

func newInbox() *inbox {
	return &inbox{messages: make(chan message, 100_000), unreachable: make(chan uint64, 100_000)}
}

func (i *inbox) Receive(from uint64, shard uint16, m []byte) {
	if hold := i.hold.Load(); hold != nil {
		<-*hold
	}
	i.messages <- message{from, shard, string(m)}
}

func (i *inbox) Unreachable(node uint64) { i.unreachable <- node }

func (i *inbox) ReceiveSnapshot(ctx context.Context, from uint64, shard uint16, r io.Reader) error {
	return i.snapshot(ctx, from, shard, r)
}

func (i *inbox) handle(ctx context.Context, from uint64, kind byte, body []byte) ([]byte, error) {
	return i.call(ctx, from, kind, body)
}

// next is the next message, or a failure.
func (i *inbox) next(t *testing.T) message {
	t.Helper()
	select {
	case m := <-i.messages:
		return m
	case <-time.After(patience):
		t.Fatal("no message came")
		return message{}
	}
}

// told waits to hear that a node is unreachable.
func (i *inbox) told(t *testing.T, node uint64) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case n := <-i.unreachable:
			if n == node {
				return
			}
		case <-deadline:
			t.Fatalf("nobody said that node %d is unreachable", node)
		}
	}
}

// until polls for a state.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("not within the time: " + what)
		}
	}
}

// talks waits until messages get from one node to another.
func talks(t *testing.T, from, to *member) {
	t.Helper()
	until(t, fmt.Sprintf("node %d reaches node %d", from.node, to.node), func() bool {
		from.Send(to.node, 7, []byte("are you there"))
		select {
		case m := <-to.messages:
			return m.from == from.node
		case <-time.After(5 * time.Millisecond):
			return false
		}
	})
}

// journal is a log that is written and read at once.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) holds(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.b.String(), text)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// is says that an error is of one of the two classes, and not of the other.
func is(err, class error) bool {
	code := map[error]fault.Code{peer.ErrNotSent: fault.OwnershipLost, peer.ErrLost: fault.UnknownWriteOutcome}[class]
	return errors.Is(err, class) && errors.Is(err, peer.ErrNotSent) != errors.Is(err, peer.ErrLost) && fault.CodeOf(err) == code
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
