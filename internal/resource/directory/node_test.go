package directory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

// node is an open store whose clock and due work move by hand.
type node struct {
	t     *testing.T
	fs    vfs.FS
	store *kv.Store
	e     *engine.Engine
	now   time.Time
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, fs: vfs.NewMem(), now: time.Now().Truncate(time.Millisecond)}
	n.open()
	t.Cleanup(func() {
		if !t.Failed() {
			n.check()
		}
		n.close()
	})
	return n
}

func (n *node) openStore() {
	n.t.Helper()
	var err error
	n.store, err = kv.Open("db", kv.Options{FS: n.fs, CacheBytes: 1 << 20, NoSync: true})
	n.must(err)
}

func (n *node) open() {
	n.t.Helper()
	n.openStore()
	var err error
	n.e, err = engine.Open(engine.Config{Store: n.store, Shards: 2, Now: func() time.Time { return n.now }})
	n.must(err)
}

func (n *node) close() { n.t.Helper(); n.must(errors.Join(n.e.Close(), n.store.Close())) }

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) is(err error, code fault.Code, reason string) {
	n.t.Helper()
	if f := fault.From(err); f == nil || f.Code != code || f.Reason != reason {
		n.t.Errorf("want %s (%s), got %v", code, reason, err)
	}
}

// call carries out an operation as the store's root.
func call[Req, Resp any](n *node, o api.Op[Req, Resp], req Req) (*Resp, error) {
	n.t.Helper()
	api.ApplyDefaults(&req)
	if c, ok := any(&req).(api.CommandRequest); ok && c.GetCommandID() == "" {
		c.SetCommandID(api.NewCommandID())
	}
	resp, err := n.e.Do(context.Background(), n.e.Root(), o.Operation, &req)
	if err != nil {
		return nil, err
	}
	return resp.(*Resp), nil
}

func (n *node) configure(req api.ResourcesConfigureRequest) (*api.ResourcesConfigureResponse, error) {
	n.t.Helper()
	return call(n, api.ResourcesConfigure, req)
}

func (n *node) make(name string, kind api.ResourceKind) api.Resource {
	n.t.Helper()
	resp, err := n.configure(api.ResourcesConfigureRequest{Name: name, Kind: kind})
	n.must(err)
	return resp.Resource
}

func at(key string) api.PartitionRef {
	return api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: key}
}

func (n *node) commit(key string, ms ...api.Mutation) error {
	n.t.Helper()
	_, err := call(n, api.CommandsCommit, api.CommandsCommitRequest{Partition: at(key), Mutations: ms})
	return err
}

// something is a mutation that stores a row in a resource.
func something(name string, kind api.ResourceKind, i int) api.Mutation {
	event := api.Event{Type: "Happened", Payload: api.JSON("1")}
	switch kind {
	case api.KindCollection:
		return api.Mutation{PutDocument: &api.PutDocument{Collection: name, ID: fmt.Sprint("doc", i), Document: api.JSON("{}")}}
	case api.KindStreamSet:
		return api.Mutation{AppendEvents: &api.AppendEvents{StreamSet: name, StreamID: fmt.Sprint("stream", i%3), Expected: api.ExpectAny(), Events: []api.Event{event}}}
	case api.KindTopic:
		return api.Mutation{Publish: &api.Publish{Topic: name, Events: []api.Event{event}}}
	default:
		return api.Mutation{Enqueue: &api.Enqueue{Queue: name, Message: api.Message{Payload: api.JSON("1")}}}
	}
}

// fill stores rows in several partitions.
func (n *node) fill(name string, kind api.ResourceKind, parts, each int) {
	n.t.Helper()
	for p := range parts {
		var ms []api.Mutation
		for i := range each {
			ms = append(ms, something(name, kind, i))
		}
		n.must(n.commit(fmt.Sprint("part", p), ms...))
	}
}

// ticks lets every shard do what is due, once, and says whether more is due.
func (n *node) tick() (more bool) {
	n.t.Helper()
	for shard := range n.e.Shards() + 1 {
		if due, _ := (engine.Chores{Engine: n.e}).NextDue(shard); due != 0 && due <= n.now.UnixMilli() {
			_, err := (engine.Chores{Engine: n.e}).Tick(context.Background(), shard)
			n.must(err)
		}
		due, _ := (engine.Chores{Engine: n.e}).NextDue(shard)
		more = more || due != 0 && due <= n.now.UnixMilli()
	}
	return more
}

// held counts the rows of a resource in the tables of its kind, by its number.
func (n *node) held(r api.Resource) (rows int) {
	n.t.Helper()
	snap := n.store.NewSnapshot()
	defer snap.Close()
	var tables []table.Info
	for _, res := range n.e.Registry().Keepers(r.Kind) {
		tables = append(tables, res.Tables...)
	}
	if len(tables) == 0 {
		n.t.Fatalf("nobody keeps rows of a %s", r.Kind)
	}
	for shard := uint16(1); shard <= n.e.Shards(); shard++ {
		n.must(partitions.Each(snap, shard, [16]byte{}, func(s table.Space, _ api.PartitionRef) (bool, error) {
			for _, t := range tables {
				prefix := table.Owner{Space: s, Resource: r.ID}.Append([]byte{byte(t.ID)})
				if err := snap.Scan(prefix, append(prefix, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF), false, func(_, _ []byte) (bool, error) { rows++; return true, nil }); err != nil {
					return false, err
				}
			}
			return true, nil
		}))
	}
	return rows
}

// freeze does the first step of a deletion and nothing of the rest, as a process
// that dies there would.
func (n *node) freeze(name string) {
	n.t.Helper()
	identity := n.e.Identity()
	n.close()
	n.openStore()
	registry, err := engine.Registry(api.DurableDisk)
	n.must(err)
	m, err := machine.New(n.store, machine.Config{Incarnation: identity.Incarnation, Durability: api.DurableDisk, Registry: registry})
	n.must(err)
	req := &directory.FreezeRequest{CommandID: uuid.NewString(), Tenant: "default", Database: "main", Name: name, Frozen: true}
	fingerprint, encoded, err := wire.Fingerprint(directory.Freeze.Number, req)
	n.must(err)
	who := machine.Identity{ID: uuid.MustParse(req.CommandID), Principal: access.System}
	outs, _, pending, err := m.Apply(&machine.Entry{
		At: n.now.UnixMilli(), Epoch: 1,
		Commands: []machine.Command{machine.NewCommand(directory.Freeze.Operation, who, fingerprint, encoded, req)},
	})
	n.must(err)
	n.must(errors.Join(pending.Wait(), m.Close(), n.store.Close()))
	if outs[0].Err != nil {
		n.t.Fatal(outs[0].Err)
	}
}

// check runs every package's check over every shard.
func (n *node) check() {
	n.t.Helper()
	snap := n.store.NewSnapshot()
	defer snap.Close()
	for shard := range n.e.Shards() + 1 {
		a := op.NewAudit(op.Scope{R: snap, Now: n.now.UnixMilli(), Space: table.Space{Shard: shard}, Registry: n.e.Registry()}, n.e.Registry().Resources())
		a.Shards = n.e.Shards()
		n.must(a.Run())
		if len(a.Findings) > 0 {
			n.t.Errorf("shard %d: %+v", shard, a.Findings)
		}
	}
}
