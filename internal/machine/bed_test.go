package machine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/catalog"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
	"github.com/keyload/keyload/internal/wire"
)

// judge is what testing.T and rapid.T have in common.
type judge interface {
	Helper()
	Fatalf(format string, args ...any)
}

const (
	shard = 1
	start = int64(1_800_000_000_000) // logged time at which every bed begins
)

var (
	incarnation = [16]byte{1, 2, 3}
	place       = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
	root        = Identity{Principal: access.Root, Partition: place, Hash: partitions.Hash(place)}
	worker      = Identity{Tenant: "default", Principal: "worker", Partition: place, Hash: partitions.Hash(place)}
	sealer      = token.NewSealer(incarnation, token.Keys{bytes.Repeat([]byte{7}, 32)})
)

// bed is one shard with every operation of the program, over a store in memory.
type bed struct {
	t        judge
	fs       vfs.FS
	store    *kv.Store
	m        *Machine
	registry *op.Registry
	now      int64
	ids      uint64
}

// newBed makes a shard that knows a collection "docs", a stream set "accounts",
// a topic "orders", a queue "work" and a principal "worker".
func newBed(t judge) *bed {
	t.Helper()
	b := &bed{t: t, fs: vfs.NewMem(), now: start}
	var err error
	b.registry, err = op.NewRegistry(append(catalog.Resources(), Resource(api.DurableDisk)))
	b.must(err)
	b.open()
	b.install()
	if c, ok := t.(*testing.T); ok {
		c.Cleanup(b.close)
	}
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("failed: %v", err)
	}
}

func (b *bed) open() {
	b.t.Helper()
	var err error
	b.store, err = kv.Open("db", kv.Options{FS: b.fs, NoSync: true, CacheBytes: 1 << 20})
	b.must(err)
	b.m, err = New(b.store, Config{Shard: shard, Incarnation: incarnation, Durability: api.DurableDisk, Registry: b.registry})
	b.must(err)
}

func (b *bed) close() { b.t.Helper(); b.must(errors.Join(b.m.Close(), b.store.Close())) }

// restart forgets everything that is only in memory.
func (b *bed) restart() { b.t.Helper(); b.close(); b.open() }

// install brings the definitions to the shard as the catalog would.
func (b *bed) install() {
	b.t.Helper()
	req := &system.InstallRequest{CommandID: b.id7().String()}
	add := func(kind changes.Kind, record []byte) {
		req.Changes = append(req.Changes, changes.Change{Revision: uint64(len(req.Changes) + 1), Kind: kind, Record: record})
	}
	for i, c := range []*api.ResourcesConfigureRequest{
		{Name: "docs", Kind: api.KindCollection, Collection: &api.CollectionPolicy{
			TombstoneRetentionSeconds: 60,
			Indexes:                   []api.IndexDefinition{{Name: "byN", Paths: []string{"/n"}}, {Name: "byU", Paths: []string{"/u"}, Unique: true}},
		}},
		{Name: "accounts", Kind: api.KindStreamSet},
		{Name: "orders", Kind: api.KindTopic, Source: &api.SourcePolicy{EventIDRetentionSeconds: 30}},
		{Name: "work", Kind: api.KindQueue, Queue: &api.QueuePolicy{MaxAttempts: 3, FinishedRetentionSeconds: 40, DeadLetter: api.DeadLetterPolicy{MaxMessages: 2}}},
	} {
		api.ApplyDefaults(c)
		r := c.Resource()
		r.ID, r.Version = uint32(i+1), 1
		add(changes.Resource, table.EncodeCBOR(nil, &r))
	}
	add(changes.Principal, table.EncodeCBOR(nil, &api.Principal{ID: "worker", Tenant: "default", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1}))
	add(changes.Principal, table.EncodeCBOR(nil, &api.Principal{ID: "reader", Tenant: "default", Roles: []api.Role{api.RoleReader}, PolicyEpoch: 1}))
	add(changes.Principal, table.EncodeCBOR(nil, &api.Principal{ID: "brief", Tenant: "default", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1, ExpiresAt: api.Time(start + 1000)}))
	b.accepted(b.do(b.internal(system.Install.Operation, req)))
}

// internal is a command of the store's own.
func (b *bed) internal(o *api.Operation, req any) Command {
	b.t.Helper()
	return b.command(Identity{ID: b.id7(), Principal: access.System}, o, req)
}

// id7 makes the next command id: version 7, at the bed's time.
func (b *bed) id7() uuid.UUID { return b.id7At(b.now) }

func (b *bed) id7At(millis int64) (u uuid.UUID) {
	b.ids++
	binary.BigEndian.PutUint64(u[:8], uint64(millis)<<16)
	u[6], u[8] = 0x70, 0x80
	binary.BigEndian.PutUint32(u[12:], uint32(b.ids))
	return u
}

// id4 makes the next command id without a time.
func (b *bed) id4() (u uuid.UUID) {
	b.ids++
	u[6], u[8] = 0x40, 0x80
	binary.BigEndian.PutUint32(u[12:], uint32(b.ids))
	return u
}

// command makes a command as the door would. An identity without an id gets one.
func (b *bed) command(who Identity, o *api.Operation, req any) Command {
	b.t.Helper()
	if who.ID == ([16]byte{}) {
		who.ID = b.id7()
	}
	req.(api.CommandRequest).SetCommandID(uuid.UUID(who.ID).String())
	api.ApplyDefaults(req)
	if v := api.Validate(req); o.Number < 60000 && len(v) > 0 {
		b.t.Fatalf("%s: %v", o.Name, v)
	}
	h, ok := b.registry.Numbered(o.Number)
	if !ok {
		b.t.Fatalf("no handler for %s", o.Name)
	}
	fingerprint, encoded, err := wire.Fingerprint(o.Number, req)
	b.must(err)
	if h.Prepare != nil {
		_, err := h.Prepare(&op.Door{Tokens: sealer, Now: b.now}, req)
		b.must(err)
		encoded, err = wire.EncodeLog(req)
		b.must(err)
	}
	return NewCommand(o, who, fingerprint, encoded, nil)
}

// commit is the command of a batch of mutations.
func (b *bed) commit(who Identity, ms ...api.Mutation) Command {
	b.t.Helper()
	return b.command(who, api.CommandsCommit.Operation, &api.CommandsCommitRequest{Partition: who.Partition, Mutations: ms})
}

func put(id, text string) api.Mutation {
	return api.Mutation{PutDocument: &api.PutDocument{Collection: "docs", ID: id, Document: api.JSON(text)}}
}

func putAt(id, text string, revision uint64) api.Mutation {
	m := put(id, text)
	m.PutDocument.ExpectedRevision = &revision
	return m
}

// entry is an entry of the log at the bed's time.
func (b *bed) entry(cmds ...Command) *Entry {
	return &Entry{At: b.now, Seed: uint64(b.now), Epoch: 1, Commands: cmds}
}

// apply applies an entry.
func (b *bed) apply(e *Entry) []Outcome {
	b.t.Helper()
	outs, _, pending, err := b.m.Apply(e)
	b.must(err)
	b.must(pending.Wait())
	return outs
}

// do applies an entry of one command.
func (b *bed) do(cmd Command) Outcome { b.t.Helper(); return b.apply(b.entry(cmd))[0] }

// tick lets due work happen until nothing is due; it answers how many it took.
func (b *bed) tick() (ticks int) {
	b.t.Helper()
	for ; ticks < 10_000; ticks++ {
		if next := b.m.NextDue(); next == 0 || next > b.now {
			return ticks
		}
		b.do(Tick())
	}
	b.t.Fatalf("due work never ends")
	return ticks
}

// rows is every row of the store but the shard's head, by key.
func (b *bed) rows() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	snap := b.store.NewSnapshot()
	b.must(snap.Scan(nil, nil, false, func(k, v []byte) (bool, error) {
		if k[0] != byte(table.ShardHead) {
			out[string(k)] = string(v)
		}
		return true, nil
	}))
	b.must(snap.Close())
	return out
}

// count is how many rows a table has.
func (b *bed) count(id table.ID) (n int) {
	for k := range b.rows() {
		if k[0] == byte(id) {
			n++
		}
	}
	return n
}

// difference names rows that two states do not share; "" when they are equal.
func difference(a, b map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if v, ok := b[k]; !ok || v != a[k] {
			return fmt.Sprintf("%x is %x here and %x there (%v)", k, a[k], v, ok)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			return fmt.Sprintf("%x is there only", k)
		}
	}
	return ""
}

// shown is an outcome as bytes: what a caller would get.
func shown(t judge, o Outcome) string {
	t.Helper()
	if o.Err != nil {
		b, err := wire.EncodeLog(o.Err)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		return "refused " + string(b)
	}
	if o.Response == nil {
		return fmt.Sprintf("tick %+v", o.Tick)
	}
	b, err := wire.EncodeLog(o.Response)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(b)
}

// check runs the checks of every package over the shard.
func (b *bed) check() {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	// The bed has no shard of the catalog, so package system has nothing to compare with.
	resources := slices.DeleteFunc(slices.Clone(b.registry.Resources()), func(r op.Resource) bool { return r.Name == "system" })
	a := op.NewAudit(op.Scope{R: snap, Now: b.now, Space: table.Space{Shard: shard}, Registry: b.registry}, resources)
	b.must(a.Run())
	b.must(snap.Close())
	if len(a.Findings) > 0 {
		b.t.Fatalf("check: %+v", a.Findings)
	}
}

// refused fails unless the outcome is a refusal with this code and reason.
func (b *bed) refused(o Outcome, code fault.Code, reason string, recorded bool) {
	b.t.Helper()
	if o.Err == nil || o.Err.Code != code || o.Err.Reason != reason || o.Err.Recorded != recorded {
		b.t.Fatalf("want %s (%s) recorded %v, got %+v", code, reason, recorded, o.Err)
	}
}

// accepted fails unless the outcome is a success.
func (b *bed) accepted(o Outcome) Outcome {
	b.t.Helper()
	if o.Err != nil {
		b.t.Fatalf("refused: %v", o.Err)
	}
	return o
}
