package solo

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
)

var place = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}

// bed is a log of one data shard and the catalog's, with a clock that tells when
// an entry is evaluated.
type bed struct {
	t         *testing.T
	fs        vfs.FS
	store     *kv.Store
	log       *Log
	registry  *op.Registry
	now       atomic.Int64
	entries   atomic.Int64  // evaluated, both shards
	evaluated chan struct{} // a value for each, when not nil
	ids       atomic.Uint32
	mu        sync.Mutex
	hints     []op.Hint
	stage     func(name string) // of the store, when not nil
}

// newBed opens a log on a file system; with a new one it makes a collection
// "docs" and a queue "work" first.
func newBed(t *testing.T, fs vfs.FS) *bed {
	t.Helper()
	b := &bed{t: t, fs: fs}
	b.now.Store(began)
	b.ids.Store(1 << 20)
	var err error
	b.registry, err = op.NewRegistry(append(catalog.Resources(), machine.Resource(api.DurableDisk)))
	b.must(err)
	b.open()
	if b.log.Status(data).Position == 0 {
		b.install()
	}
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) config() commitlog.Config {
	return commitlog.Config{
		Store: b.store, Shards: 1,
		Machine: machine.Config{Incarnation: [16]byte{1}, Durability: api.DurableDisk, Registry: b.registry},
		Now: func() int64 {
			b.entries.Add(1)
			if b.evaluated != nil {
				b.evaluated <- struct{}{}
			}
			return b.now.Load()
		},
		Seed: func() uint64 { return 1 },
		Hint: func(h op.Hint) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.hints = append(b.hints, h)
		},
	}
}

func (b *bed) open() {
	b.t.Helper()
	var err error
	b.store, err = kv.Open("db", kv.Options{FS: b.fs, CacheBytes: 1 << 20, Stage: b.stage})
	b.must(err)
	b.log, err = Open(b.config())
	b.must(err)
}

func (b *bed) close() {
	b.t.Helper()
	b.must(b.log.Close())
	b.must(b.store.Close())
}

func (b *bed) install() {
	b.t.Helper()
	req := &system.InstallRequest{}
	for i, c := range []*api.ResourcesConfigureRequest{{Name: "docs", Kind: api.KindCollection}, {Name: "work", Kind: api.KindQueue}} {
		api.ApplyDefaults(c)
		r := c.Resource()
		r.ID, r.Version = uint32(i+1), 1
		req.Changes = append(req.Changes, changes.Change{Revision: uint64(i + 1), Kind: changes.Resource, Record: table.EncodeCBOR(nil, &r)})
	}
	out, err := b.log.Propose(context.Background(), data, b.command(b.id(), system.Install.Operation, req), false, nil)
	b.must(err)
	if out.Err != nil {
		b.t.Fatal(out.Err)
	}
}

// id makes a command id of version 7.
func (b *bed) id() (id [16]byte) {
	binary.BigEndian.PutUint64(id[:], uint64(began)<<16)
	id[6], id[8] = 0x70, 0x80
	binary.BigEndian.PutUint32(id[12:], b.ids.Add(1))
	return id
}

func (b *bed) command(id [16]byte, o *api.Operation, req any) machine.Command {
	fingerprint, encoded, err := wire.Fingerprint(o.Number, req)
	if err != nil {
		panic(err)
	}
	who := machine.Identity{ID: id, Principal: access.Root, Partition: place, Hash: partitions.Hash(place)}
	return machine.NewCommand(o, who, fingerprint, encoded, nil)
}

// put is the command that stores the n-th document.
func (b *bed) put(n int) machine.Command {
	return b.command(b.id(), api.CommandsCommit.Operation, &api.CommandsCommitRequest{Partition: place, Mutations: []api.Mutation{
		{PutDocument: &api.PutDocument{Collection: "docs", ID: fmt.Sprintf("doc%06d", n), Document: api.JSON("{}")}},
	}})
}

// enqueue is a command that wakes a receiver and, with a time, is due later.
func (b *bed) enqueue(notBefore int64) machine.Command {
	priority := 4
	return b.command(b.id(), api.CommandsCommit.Operation, &api.CommandsCommitRequest{Partition: place, Mutations: []api.Mutation{
		{Enqueue: &api.Enqueue{Queue: "work", Message: api.Message{Payload: api.JSON("1"), NotBefore: api.Time(notBefore), Priority: &priority}, IfExists: api.IfExistsFail}},
	}})
}

// submit hands a command to the shard's queue and does not wait.
func (b *bed) submit(cmd machine.Command) chan result {
	p := proposal{cmd, make(chan result, 1), func() {}}
	b.log.shards[data].queue <- p
	return p.result
}

// answered fails unless the command was accepted.
func (b *bed) answered(results ...chan result) {
	b.t.Helper()
	for i, c := range results {
		if r := <-c; r.err != nil || r.out.Err != nil {
			b.t.Fatalf("command %d: %v, %v", i, r.err, r.out.Err)
		}
	}
}

func (b *bed) waiting(results ...chan result) {
	b.t.Helper()
	for i, c := range results {
		if len(c) > 0 {
			b.t.Fatalf("command %d was answered before its entry was durable: %+v", i, <-c)
		}
	}
}

// documents is how many documents a reader sees.
func documents(t *testing.T, r kv.Reader) (n int) {
	t.Helper()
	err := r.Scan([]byte{byte(table.Document)}, []byte{byte(table.Document) + 1}, false, func(_, _ []byte) (bool, error) { n++; return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (b *bed) documents() int {
	b.t.Helper()
	s := b.store.NewSnapshot()
	defer s.Close()
	return documents(b.t, s)
}

func is(t *testing.T, err error, code fault.Code, reason string) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Code != code || f.Reason != reason {
		t.Errorf("want %s (%s), got %v", code, reason, err)
	}
}

// gate is a file system whose syncs of the log can be held up.
type gate struct {
	vfs.FS
	mu sync.RWMutex
}

type gatedFile struct {
	vfs.File
	mu *sync.RWMutex
}

// hold lets no sync of the log begin until the returned function is called.
func (g *gate) hold() (release func()) { g.mu.Lock(); return g.mu.Unlock }

func (g *gate) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return gatedFile{f, &g.mu}, nil
}

func (g *gate) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.Create(name, c)
	return g.wrap(name, f, err)
}

func (g *gate) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.ReuseForWrite(old, name, c)
	return g.wrap(name, f, err)
}

func (f gatedFile) Sync() error     { f.mu.RLock(); defer f.mu.RUnlock(); return f.File.Sync() }
func (f gatedFile) SyncData() error { f.mu.RLock(); defer f.mu.RUnlock(); return f.File.SyncData() }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
