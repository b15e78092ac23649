package topic

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/batch"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
	"github.com/keyload/keyload/internal/wire"
)

var partition = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}

// bed is one shard with a topic "orders", evaluated by the machine as in a
// server; its clock moves when told to.
type bed struct {
	t        *testing.T
	fs       vfs.FS
	store    *kv.Store
	registry *op.Registry
	m        *machine.Machine
	now      int64
	ids      uint64
}

func newBed(t *testing.T) *bed {
	t.Helper()
	registry, err := op.NewRegistry([]op.Resource{
		directory.Resource(nil), source.Resource(), Resource(), batch.Resource(),
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, fs: vfs.NewMem(), registry: registry, now: 1_700_000_000_000}
	b.open()
	configure := &api.ResourcesConfigureRequest{CommandID: b.id(), Database: "main", Name: "orders", Kind: api.KindTopic}
	b.complete(configure)
	b.one(b.command(api.ResourcesConfigure.Operation, configure, configure.CommandID))
	return b
}

func (b *bed) open() {
	b.t.Helper()
	var err error
	if b.store, err = kv.Open("db", kv.Options{FS: b.fs, NoSync: true}); err == nil {
		b.m, err = machine.New(b.store, machine.Config{Shard: 1, Durability: api.DurableProcess, Registry: b.registry})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) restart() {
	b.t.Helper()
	if err := b.m.Close(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.store.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

// id is the next command id: version 7, in the order of time.
func (b *bed) id() string {
	b.ids++
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(b.now)<<16)
	binary.BigEndian.PutUint64(id[8:], b.ids)
	id[6] |= 0x70
	id[8] |= 0x80
	return id.String()
}

// complete fills in the defaults of a request, which must be valid.
func (b *bed) complete(req any) {
	b.t.Helper()
	api.ApplyDefaults(req)
	if f := api.ValidationError(api.Validate(req)); f != nil {
		b.t.Fatal(f)
	}
}

func (b *bed) command(o *api.Operation, req any, id string) machine.Command {
	b.t.Helper()
	sum, encoded, err := wire.Fingerprint(o.Number, req)
	if err != nil {
		b.t.Fatal(err)
	}
	return machine.NewCommand(o, machine.Identity{
		ID: uuid.MustParse(id), Principal: access.Root, Partition: partition, Hash: partitions.Hash(partition),
	}, sum, encoded, req)
}

// entry applies commands as one entry of the log.
func (b *bed) entry(commands ...machine.Command) ([]machine.Outcome, []op.Hint) {
	b.t.Helper()
	out, hints, pending, err := b.m.Apply(&machine.Entry{At: b.now, Seed: 1, Epoch: 1, Commands: commands})
	if err == nil {
		err = pending.Wait()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return out, hints
}

func (b *bed) one(c machine.Command) machine.Outcome {
	b.t.Helper()
	out, _ := b.entry(c)
	return out[0]
}

func request(id string, mutations ...api.Mutation) *api.CommandsCommitRequest {
	return &api.CommandsCommitRequest{CommandID: id, Partition: partition, Mutations: mutations}
}

func (b *bed) batch(req *api.CommandsCommitRequest) machine.Command {
	b.t.Helper()
	b.complete(req)
	return b.command(api.CommandsCommit.Operation, req, req.CommandID)
}

func (b *bed) commit(mutations ...api.Mutation) (*api.CommandsCommitResponse, *fault.Error) {
	b.t.Helper()
	return b.again(b.id(), mutations...)
}

func (b *bed) again(id string, mutations ...api.Mutation) (*api.CommandsCommitResponse, *fault.Error) {
	b.t.Helper()
	out := b.one(b.batch(request(id, mutations...)))
	resp, _ := out.Response.(*api.CommandsCommitResponse)
	return resp, out.Err
}

func (b *bed) tick() {
	b.t.Helper()
	for range 1000 {
		if due := b.m.NextDue(); due == 0 || due > b.now {
			return
		}
		b.one(machine.Tick())
	}
	b.t.Fatal("due work does not end")
}

// query answers one of this package's queries over a snapshot.
func (b *bed) read(req api.EventsReadRequest) (*api.EventsReadResponse, *fault.Error) {
	b.t.Helper()
	b.complete(&req)
	var resp any
	err := b.view(func(v *op.View, h *op.Handler) (err error) {
		resp, err = h.Run(v, &req)
		return err
	})
	if err != nil && fault.From(err) == nil {
		b.t.Fatal(err)
	}
	out, _ := resp.(*api.EventsReadResponse)
	return out, fault.From(err)
}

func (b *bed) view(fn func(v *op.View, h *op.Handler) error) error {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	root, err := access.Find(snap, 1, "", access.Root)
	if err != nil {
		b.t.Fatal(err)
	}
	h, ok := b.registry.Handler(api.EventsRead.Name)
	if !ok {
		b.t.Fatal("events.read has no handler")
	}
	return fn(&op.View{
		Scope: op.Scope{
			R: snap, Now: b.now, Space: table.Space{Shard: 1, Partition: partitions.Hash(partition)},
			Partition: partition, Principal: root, Registry: b.registry,
		},
		Door: op.Door{Tokens: token.NewSealer([16]byte{}, token.Keys{bytes.Repeat([]byte{3}, 32)}), Now: b.now},
	}, h)
}

func (b *bed) check() {
	b.t.Helper()
	var a *op.Audit
	err := b.view(func(v *op.View, _ *op.Handler) error {
		a = op.NewAudit(v.Scope, []op.Resource{source.Resource(), directory.Resource(nil)})
		a.Partitions = map[[16]byte]bool{v.Space.Partition: true}
		return a.Run()
	})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range a.Findings {
		b.t.Errorf("%s: %s: %s", f.Invariant, f.Where, f.Text)
	}
}

func publishing(events ...api.Event) api.Mutation {
	return api.Mutation{Publish: &api.Publish{Topic: "orders", Generation: 1, Events: events}}
}

func purging(through uint64) api.Mutation {
	return api.Mutation{PurgeTopic: &api.PurgeTopic{Topic: "orders", Generation: 1, ThroughPosition: through}}
}

func event(id string) api.Event {
	return api.Event{EventID: id, Type: "Placed", Payload: api.JSON(`{"id":"` + id + `"}`), SchemaVersion: 1}
}

var ofOrders = api.SourceRef{Partition: partition, Resource: "orders", Kind: api.SourceTopic, Generation: 1}
