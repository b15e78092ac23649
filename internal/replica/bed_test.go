package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/catalog"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

const (
	data  = 1 // the shard the tests write to
	began = int64(1_800_000_000_000)
	// tick is short, so that elections are; not so short that a busy machine has them
	// all the time.
	tick = 20 * time.Millisecond
	// patience is for what must happen, and takes long when something else runs here.
	patience = 60 * time.Second
)

var (
	place = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
	ctx   = context.Background()
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is nodes of one data shard and the catalog's, each on a disk of its own.
type cluster struct {
	t        *testing.T
	net      *network
	registry *op.Registry
	nodes    map[uint64]*node
	rng      *rand.Rand
	now      atomic.Int64
	drawn    atomic.Uint32
}

// node is one of them.
type node struct {
	c       *cluster
	id      uint64
	found   bool
	mem     *vfs.MemFS
	fs      vfs.FS // mem, or what a test puts above it
	store   *kv.Store
	journal *kv.Store
	log     *Log
	led     chan uint64 // terms in which it came to lead the data shard
	mu      sync.Mutex
	hints   []op.Hint
}

// newCluster makes a cluster of one node, with a collection "docs" and a queue "work",
// and lets so many others join it.
func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	c := &cluster{t: t, net: newNetwork(1), nodes: map[uint64]*node{}, rng: rand.New(rand.NewPCG(7, 7))}
	c.now.Store(began)
	var err error
	c.registry, err = op.NewRegistry(append(catalog.Resources(), machine.Resource(api.DurableDisk)))
	c.must(err)
	first := c.add(1, true)
	c.lead(first)
	c.install(first)
	for id := uint64(2); id <= uint64(nodes); id++ {
		c.join(c.add(id, false))
	}
	t.Cleanup(func() {
		c.net.wait.Wait()
		for _, n := range c.nodes {
			if n.log != nil {
				n.close()
			}
		}
	})
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// add makes a node with empty disks and starts it.
func (c *cluster) add(id uint64, found bool) *node {
	c.t.Helper()
	n := &node{c: c, id: id, found: found, mem: vfs.NewCrashableMem(), led: make(chan uint64, 1000)}
	n.fs = n.mem
	c.nodes[id] = n
	c.must(n.open())
	return n
}

func (n *node) config() (Config, error) {
	c := n.c
	spool, err := kv.NewFiles(n.journal, "spool")
	return Config{
		Config: commitlog.Config{
			Store: n.store, Shards: 1,
			Machine: machine.Config{Incarnation: [16]byte{1}, Durability: api.DurableDisk, Registry: c.registry},
			Now:     func() int64 { return c.now.Add(1) },
			Seed:    func() uint64 { return 1 },
			Led: func(shard uint16, term uint64) {
				if shard == data {
					n.led <- term
				}
			},
			Hint: func(h op.Hint) { n.mu.Lock(); defer n.mu.Unlock(); n.hints = append(n.hints, h) },
		},
		Node: n.id, Journal: n.journal, Spool: spool, Transport: port{c.net, n.id}, Found: n.found, Tick: tick,
	}, err
}

// open starts the node on its disks.
func (n *node) open() (err error) {
	if n.store, err = kv.Open("db", kv.Options{FS: n.fs, NoSync: true, CacheBytes: 1 << 20}); err != nil {
		return err
	}
	if n.journal, err = kv.Open("journal", kv.Options{FS: n.fs, CacheBytes: 1 << 20}); err != nil {
		return errors.Join(err, n.store.Close())
	}
	cfg, err := n.config()
	if err == nil {
		n.log, err = Open(cfg)
	}
	if err != nil {
		n.log = nil
		return errors.Join(err, n.store.Close(), n.journal.Close())
	}
	n.c.net.plug(n.id, n.log)
	return nil
}

func (n *node) close() {
	n.c.t.Helper()
	n.c.net.unplug(n.id)
	n.c.must(n.log.Close())
	n.log = nil
	n.store.Close() // has failed, in some tests
	n.journal.Close()
}

// lose takes the power of nodes at one instant; what was not synced is lost, or some
// of it. They are down then.
func (c *cluster) lose(nodes ...*node) {
	c.t.Helper()
	for _, n := range nodes {
		c.net.unplug(n.id)
	}
	for _, n := range nodes {
		n.mem = n.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.rng.IntN(3) * 50, RNG: c.rng})
	}
	for _, n := range nodes {
		n.close()
		n.fs = n.mem
	}
}

// until waits for a condition.
func (c *cluster) until(what string, is func() bool) {
	c.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-deadline.C:
			c.t.Fatalf("%s has not come about\n%s", what, c.shown())
		}
	}
}

// shown is where every node stands.
func (c *cluster) shown() string {
	var b strings.Builder
	for id := range c.nodes {
		n := c.nodes[id]
		if n.log == nil {
			fmt.Fprintf(&b, "node %d is down\n", id)
			continue
		}
		st := n.log.Status(data)
		p, err := n.log.Progress(ctx, data)
		fmt.Fprintf(&b, "node %d: leader %d, term %d, here %v, position %d, digest %x, %v; %+v %v\n", id, st.Leader, st.Term, st.Here, st.Position, st.Digest, st.Err, p, err)
	}
	return b.String()
}

// lead waits until a node leads both shards, and lets it.
func (c *cluster) lead(n *node) {
	c.t.Helper()
	for shard := range uint16(2) {
		c.until(fmt.Sprintf("that node %d leads shard %d", n.id, shard), func() bool {
			if n.log.Status(shard).Here {
				return true
			}
			if l := c.leader(shard); l != nil {
				l.log.Transfer(ctx, shard, n.id)
			}
			return n.log.Status(shard).Here
		})
	}
}

// leader is a node that takes itself for the leader of a shard; nil when none does.
func (c *cluster) leader(shard uint16) *node {
	var found *node
	for _, n := range c.nodes {
		if n.log != nil && n.log.Status(shard).Here && (found == nil || found.log.Status(shard).Term < n.log.Status(shard).Term) {
			found = n
		}
	}
	return found
}

// leading waits for a leader of the data shard.
func (c *cluster) leading() (n *node) {
	c.t.Helper()
	c.until("a leader", func() bool { n = c.leader(data); return n != nil })
	return n
}

// join makes a node a voter of both shards.
func (c *cluster) join(n *node) {
	c.t.Helper()
	for shard := range uint16(2) {
		c.change(func(l *Log) error { return l.AddLearner(ctx, shard, n.id) }, shard)
		c.change(func(l *Log) error { return l.Promote(ctx, shard, n.id) }, shard)
	}
}

// change asks the leader for a change of members until it is made.
func (c *cluster) change(ask func(*Log) error, shard uint16) {
	c.t.Helper()
	var err error
	c.until("a change of the members", func() bool {
		n := c.leader(shard)
		if n == nil {
			return false
		}
		if err = ask(n.log); err == nil {
			return true
		}
		if f := fault.From(err); f == nil || f.Code != fault.Conflict && f.Code != fault.OwnershipLost && f.Code != fault.UnknownWriteOutcome {
			c.t.Fatal(err)
		}
		return false
	})
}

func (c *cluster) install(n *node) {
	c.t.Helper()
	req := &system.InstallRequest{}
	for i, r := range []*api.ResourcesConfigureRequest{{Name: "docs", Kind: api.KindCollection}, {Name: "work", Kind: api.KindQueue}} {
		api.ApplyDefaults(r)
		res := r.Resource()
		res.ID, res.Version = uint32(i+1), 1
		req.Changes = append(req.Changes, changes.Change{Revision: uint64(i + 1), Kind: changes.Resource, Record: table.EncodeCBOR(nil, &res)})
	}
	c.accepted(n.log.Propose(ctx, data, c.command(system.Install.Operation, req), false, nil))
}

// id makes a command id of version 7.
func (c *cluster) id() (id [16]byte) {
	binary.BigEndian.PutUint64(id[:], uint64(began)<<16)
	id[6], id[8] = 0x70, 0x80
	binary.BigEndian.PutUint32(id[12:], c.drawn.Add(1))
	return id
}

func (c *cluster) command(o *api.Operation, req any) machine.Command {
	fingerprint, encoded, err := wire.Fingerprint(o.Number, req)
	if err != nil {
		panic(err)
	}
	who := machine.Identity{ID: c.id(), Principal: access.Root, Partition: place, Hash: partitions.Hash(place)}
	return machine.NewCommand(o, who, fingerprint, encoded, nil)
}

// put is the command that stores a document.
func (c *cluster) put(id string) machine.Command {
	return c.command(api.CommandsCommit.Operation, &api.CommandsCommitRequest{Partition: place, Mutations: []api.Mutation{
		{PutDocument: &api.PutDocument{Collection: "docs", ID: id, Document: api.JSON("{}")}},
	}})
}

// large is one whose document has about so many bytes.
func (c *cluster) large(id string, size int) machine.Command {
	return c.command(api.CommandsCommit.Operation, &api.CommandsCommitRequest{Partition: place, Mutations: []api.Mutation{
		{PutDocument: &api.PutDocument{Collection: "docs", ID: id, Document: api.JSON(`{"x":"` + strings.Repeat("y", size) + `"}`)}},
	}})
}

func (c *cluster) accepted(out machine.Outcome, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	if out.Err != nil {
		c.t.Fatal(out.Err)
	}
}

// write stores a document through whoever leads, until it is acknowledged.
func (c *cluster) write(id string) {
	c.t.Helper()
	cmd := c.put(id)
	c.until("that "+id+" is written", func() bool { return c.try(cmd) })
}

// try proposes a command to the leader there is; true when it was carried out.
func (c *cluster) try(cmd machine.Command) bool {
	c.t.Helper()
	n := c.leader(data)
	if n == nil {
		return false
	}
	out, err := n.log.Propose(ctx, data, cmd, false, nil)
	if err == nil && out.Err != nil {
		c.t.Error(out.Err)
	}
	return err == nil
}

// documents are the ids that a reader of a node sees.
func (n *node) documents() (ids []string, err error) {
	err = n.log.Read(ctx, data, func(s *kv.Snapshot) error { ids = documentsOf(s); return nil })
	return ids, err
}

func documentsOf(r kv.Reader) (ids []string) {
	r.Scan([]byte{byte(table.Document)}, []byte{byte(table.Document) + 1}, false, func(k, _ []byte) (bool, error) {
		ids = append(ids, string(k[1+table.OwnerBytes:]))
		return true, nil
	})
	return ids
}

// settled waits until all nodes that are up have the same state of both shards.
func (c *cluster) settled() {
	c.t.Helper()
	for shard := range uint16(2) {
		c.until("that all nodes agree", func() bool {
			l := c.leader(shard)
			if l == nil {
				return false
			}
			want := l.log.Status(shard)
			for _, n := range c.nodes {
				if n.log == nil {
					continue
				}
				st := n.log.Status(shard)
				if st.Position != want.Position || st.Leader != l.id || n.log.shards[shard].apply.index.Load() != l.log.shards[shard].apply.index.Load() {
					return false
				}
				if st.Digest != want.Digest || st.Time != want.Time || st.Epoch != want.Epoch {
					c.t.Fatalf("two nodes differ at position %d of shard %d\n%s", st.Position, shard, c.shown())
				}
			}
			return true
		})
	}
	for _, n := range c.nodes {
		if n.log != nil {
			c.sameRows(c.leading(), n)
		}
	}
}

// sameRows compares the rows of two nodes, but for what is a replica's own.
func (c *cluster) sameRows(a, b *node) {
	c.t.Helper()
	rows := func(n *node) (keys []string) {
		s := n.store.NewSnapshot()
		defer s.Close()
		c.must(s.Scan(nil, nil, false, func(k, v []byte) (bool, error) {
			if k[0] != byte(table.Applied) {
				keys = append(keys, string(k)+"="+string(v))
			}
			return true, nil
		}))
		return keys
	}
	x, y := rows(a), rows(b)
	for i := range max(len(x), len(y)) {
		if i >= len(x) || i >= len(y) || x[i] != y[i] {
			c.t.Fatalf("row %d of %d at node %d is not that of %d at node %d", i, len(x), a.id, len(y), b.id)
		}
	}
}

func is(t *testing.T, err error, code fault.Code, reason string) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Code != code || f.Reason != reason {
		t.Errorf("want %s (%s), got %v", code, reason, err)
	}
}
