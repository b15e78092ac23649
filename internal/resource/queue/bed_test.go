package queue

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	batches "github.com/keyload/keyload/internal/resource/batch"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
	"github.com/keyload/keyload/internal/wire"
)

// judge is what testing.T and rapid.T have in common.
type judge interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

const shard = 1

// start is the logged time at which every bed begins.
const start = int64(1_800_000_000_000)

// bed is one shard with a real machine over a store in memory: commands go
// through their encoding, receipts are stored, and time moves when told to.
type bed struct {
	t        judge
	fs       vfs.FS
	store    *kv.Store
	m        *machine.Machine
	registry *op.Registry
	sealer   *token.Sealer
	place    api.PartitionRef
	now      int64
	seed     uint64
	ids      int
	tenant   string
	who      string
	queues   map[string]*api.Resource
	hints    map[string]int // wake-ups of the last command
	cache    int64          // bytes of the block cache
	broken   bool           // the test broke the store on purpose
}

var incarnation = [16]byte{1, 2, 3}

// newBed makes a bed with one queue "work"; a zero policy field takes its
// default. Retries do not jitter unless the policy says so.
func newBed(t judge, p api.QueuePolicy) *bed {
	t.Helper()
	b := &bed{
		t: t, fs: vfs.NewMem(), now: start, seed: 99, who: access.Root, cache: 1 << 20,
		place:  api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"},
		sealer: token.NewSealer(incarnation, token.Keys{bytes.Repeat([]byte{7}, 32)}),
		queues: map[string]*api.Resource{},
	}
	if p.Retry.Jitter == "" {
		p.Retry.Jitter = api.JitterNone
	}
	var err error
	b.registry, err = op.NewRegistry([]op.Resource{
		partitions.Resource(), access.Resource(), directory.Resource(nil), Resource(), batches.Resource(),
	})
	b.must(err)
	b.open()
	b.configure("work", p, func(*api.Resource) {})
	if c, ok := t.(*testing.T); ok {
		c.Cleanup(func() {
			if !c.Failed() && !b.broken {
				b.check()
			}
			b.close()
		})
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
	b.store, err = kv.Open("db", kv.Options{FS: b.fs, NoSync: true, CacheBytes: b.cache})
	b.must(err)
	b.m, err = machine.New(b.store, machine.Config{Shard: shard, Incarnation: incarnation, Durability: api.DurableDisk, Registry: b.registry})
	b.must(err)
}

func (b *bed) close() {
	b.t.Helper()
	if b.store == nil {
		return // it could not be opened
	}
	b.must(b.m.Close())
	b.must(b.store.Close())
}

// restart forgets everything that is only in memory.
func (b *bed) restart() { b.t.Helper(); b.close(); b.open() }

// write changes rows outside the log, as a fault or as the catalog would.
func (b *bed) write(fn func(c *op.Ctx) error) {
	b.t.Helper()
	b.must(b.m.Close())
	tx := b.store.NewTx()
	tx.Begin()
	b.must(fn(op.NewCtx(b.scope(nil), tx, [16]byte{9}, 1, 1, 1)))
	p, err := tx.Commit()
	b.must(err)
	b.must(p.Wait())
	b.must(tx.Close())
	b.m, err = machine.New(b.store, machine.Config{Shard: shard, Incarnation: incarnation, Durability: api.DurableDisk, Registry: b.registry})
	b.must(err)
}

func (b *bed) scope(r kv.Reader) op.Scope {
	return op.Scope{
		R: r, Now: b.now, Space: table.Space{Shard: shard, Partition: partitions.Hash(b.place)}, Partition: b.place,
		Principal: &api.Principal{ID: b.who, Tenant: b.tenant, Administrator: true, PolicyEpoch: 1}, Incarnation: incarnation, Registry: b.registry,
	}
}

// configure sets a queue's policy; edit may change the rest.
func (b *bed) configure(name string, p api.QueuePolicy, edit func(*api.Resource)) {
	b.t.Helper()
	req := &api.ResourcesConfigureRequest{CommandID: b.id(), Name: name, Kind: api.KindQueue, Queue: &p}
	api.ApplyDefaults(req)
	if v := api.Validate(req); len(v) > 0 {
		b.t.Fatalf("policy: %v", v)
	}
	r := req.Resource()
	r.ID, r.Version = uint32(len(b.queues)+1), 1
	if old := b.queues[name]; old != nil {
		r.ID, r.Version = old.ID, old.Version+1
	}
	edit(&r)
	b.queues[name] = &r
	b.write(func(c *op.Ctx) error { return directory.Install(c, table.EncodeCBOR(nil, &r)) })
}

func (b *bed) principal(p api.Principal) {
	b.t.Helper()
	b.write(func(c *op.Ctx) error { return access.Install(c, table.EncodeCBOR(nil, &p)) })
}

// policy is the policy of "work" to change.
func (b *bed) policy() api.QueuePolicy { return *b.queues["work"].Queue }

func (b *bed) lane() api.LaneRef { return api.LaneRef{Partition: b.place, Queue: "work"} }

func (b *bed) owner() table.Owner {
	return table.Owner{Space: table.Space{Shard: shard, Partition: partitions.Hash(b.place)}, Resource: b.queues["work"].ID}
}

// id makes the next command id: version 7, at the bed's time.
func (b *bed) id() string {
	b.ids++
	var u uuid.UUID
	ms := uint64(b.now)
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6], u[8] = 0x70, 0x80
	copy(u[9:], fmt.Sprintf("%07d", b.ids))
	return u.String()
}

// call carries out a command as the door would.
func call[Req, Resp any](b *bed, o api.Op[Req, Resp], in *Req) (*Resp, error) {
	b.t.Helper()
	req := *in // as a door that keeps the caller's request
	api.ApplyDefaults(&req)
	if v := api.Validate(&req); len(v) > 0 {
		return nil, api.ValidationError(v)
	}
	h, ok := b.registry.Handler(o.Name)
	if !ok {
		b.t.Fatalf("no handler for %s", o.Name)
	}
	fingerprint, encoded, err := wire.Fingerprint(o.Number, &req)
	b.must(err)
	door := &op.Door{Tokens: b.sealer, Now: b.now}
	if h.Prepare != nil {
		changed, err := h.Prepare(door, &req)
		if err != nil {
			return nil, err
		}
		if changed {
			encoded, err = wire.EncodeLog(&req)
			b.must(err)
		}
	}
	who := machine.Identity{
		ID: uuid.MustParse(any(&req).(api.CommandRequest).GetCommandID()), Tenant: b.tenant, Principal: b.who,
		Partition: b.place, Hash: partitions.Hash(b.place),
	}
	out := b.entry(machine.NewCommand(o.Operation, who, fingerprint, encoded, nil))
	if out.Err != nil {
		return nil, out.Err
	}
	if h.Finish != nil {
		b.must(h.Finish(door, &req, out.Response))
	}
	return out.Response.(*Resp), nil
}

// entry applies one command through the encoding of the log.
func (b *bed) entry(cmd machine.Command) machine.Outcome {
	b.t.Helper()
	e := &machine.Entry{At: b.now, Seed: b.seed, Epoch: 1, Commands: []machine.Command{cmd}}
	encoded, err := e.Encode()
	b.must(err)
	e, err = machine.DecodeEntry(encoded)
	b.must(err)
	outs, hints, pending, err := b.m.Apply(e)
	b.must(err)
	b.must(pending.Wait())
	b.hints = map[string]int{}
	for _, h := range hints {
		b.hints[h.Key] += h.Count
	}
	return outs[0]
}

// tick lets due work happen until nothing is due, as the due service would.
func (b *bed) tick() {
	b.t.Helper()
	for range 10_000 {
		if next := b.m.NextDue(); next == 0 || next > b.now {
			return
		}
		if out := b.entry(machine.Tick()); out.Err != nil {
			b.t.Fatalf("tick: %v", out.Err)
		}
	}
	b.t.Fatalf("due work never ends")
}

// later moves time and lets due work happen.
func (b *bed) later(millis int64) { b.t.Helper(); b.now += millis; b.tick() }

// ask runs a query on a snapshot.
func ask[Req, Resp any](b *bed, o api.Op[Req, Resp], req *Req) (*Resp, error) {
	b.t.Helper()
	api.ApplyDefaults(req)
	if v := api.Validate(req); len(v) > 0 {
		return nil, api.ValidationError(v)
	}
	h, _ := b.registry.Handler(o.Name)
	snap := b.store.NewSnapshot()
	defer snap.Close()
	v := &op.View{Scope: b.scope(snap), Door: op.Door{Tokens: b.sealer, Now: b.now}}
	if p, err := access.Find(snap, shard, b.tenant, b.who); err == nil && p != nil {
		v.Principal = p
	}
	resp, err := h.Run(v, req)
	if err != nil {
		return nil, err
	}
	return resp.(*Resp), nil
}

// cheap asks for the certain answer of a receive; nil is that there is none.
func (b *bed) cheap(req api.QueuesReceiveRequest) (*api.QueuesReceiveResponse, error) {
	b.t.Helper()
	req.RequestID, req.Lane = b.id(), b.lane()
	api.ApplyDefaults(&req)
	snap := b.store.NewSnapshot()
	defer snap.Close()
	return cheapReceive(&op.View{Scope: b.scope(snap), Door: op.Door{Tokens: b.sealer, Now: b.now}}, &req)
}

// check runs the check of every package over the shard.
func (b *bed) check() map[string]int64 {
	b.t.Helper()
	a := b.audit(0)
	for _, f := range a.Findings {
		b.t.Errorf("check: %s at %s: %s", f.Invariant, f.Where, f.Text)
	}
	return a.Counts
}

// audit is the audit of the shard that may hold so many rows.
func (b *bed) audit(hold int64) *op.Audit {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	a := op.NewAudit(b.scope(snap), b.registry.Resources())
	a.Hold = hold
	b.must(a.Run())
	return a
}

// rows is every row of the queue's tables, and of the due table, by key.
func (b *bed) rows() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	snap := b.store.NewSnapshot()
	defer snap.Close()
	for _, t := range append(Tables(), table.DueRows.Info()) {
		b.must(snap.Scan([]byte{byte(t.ID)}, []byte{byte(t.ID) + 1}, false, func(k, v []byte) (bool, error) {
			if t.ID != table.Due || bytes.Contains(k, b.owner().Append(nil)) {
				out[string(k)] = string(v)
			}
			return true, nil
		}))
	}
	return out
}

// code is the code and reason of an error, "" for none.
func code(err error) string {
	if f, ok := err.(*fault.Error); ok {
		if f == nil {
			return ""
		}
		return string(f.Code) + "/" + f.Reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
