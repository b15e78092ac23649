package group

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
	"github.com/keyload/keyload/internal/resource/inbox"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/queue"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/resource/stream"
	"github.com/keyload/keyload/internal/resource/topic"
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

var incarnation = [16]byte{1, 2, 3}

// bed is one shard with a real machine over a store in memory, and in it the
// topic "news", the stream set "streams" and the queue "out". Commands go through
// their encoding, receipts are stored, and time moves when told to.
type bed struct {
	t         judge
	fs        *vfs.MemFS
	sync      bool // commits wait for the disk, so that power can be lost
	store     *kv.Store
	m         *machine.Machine
	registry  *op.Registry
	sealer    *token.Sealer
	place     api.PartitionRef
	now       int64
	seed      uint64
	ids       int
	events    int
	tenant    string
	who       string
	resources map[string]*api.Resource
	hints     map[string]int // wake-ups of the last command
	replayed  bool           // the last command was answered from its receipt
	committed int            // bytes that the last entry wrote
	broken    bool           // the test broke the store on purpose
}

// newBed makes a bed in which group "g" reads the topic from the beginning. A
// zero policy field takes its default; retries do not jitter unless it says so.
func newBed(t judge, p api.GroupPolicy) *bed {
	t.Helper()
	b := emptyBed(t, memFS(), false)
	b.create("g", api.GroupDefinition{Policy: p})
	return b
}

func memFS() *vfs.MemFS { return vfs.NewMem() }

// crashable is a disk that can lose what was not synced.
func crashable() *vfs.MemFS { return vfs.NewCrashableMem() }

// emptyBed makes a bed without groups.
func emptyBed(t judge, fs *vfs.MemFS, sync bool) *bed {
	t.Helper()
	b := &bed{
		t: t, fs: fs, sync: sync, now: start, seed: 99, who: access.Root,
		place:     api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"},
		sealer:    token.NewSealer(incarnation, token.Keys{bytes.Repeat([]byte{7}, 32)}),
		resources: map[string]*api.Resource{},
	}
	var err error
	b.registry, err = op.NewRegistry([]op.Resource{
		partitions.Resource(), access.Resource(), directory.Resource(nil), source.Resource(), stream.Resource(),
		topic.Resource(), queue.Resource(), inbox.Resource(), Resource(), batches.Resource(),
	})
	b.must(err)
	b.open()
	b.resource("news", api.KindTopic, nil)
	b.resource("streams", api.KindStreamSet, nil)
	b.resource("out", api.KindQueue, nil)
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
	b.store, err = kv.Open("db", kv.Options{FS: b.fs, NoSync: !b.sync, CacheBytes: 1 << 20})
	b.must(err)
	b.machine()
}

func (b *bed) machine() {
	b.t.Helper()
	var err error
	b.m, err = machine.New(b.store, machine.Config{Shard: shard, Incarnation: incarnation, Durability: api.DurableDisk, Registry: b.registry})
	b.must(err)
}

func (b *bed) close() {
	b.t.Helper()
	if b.store != nil {
		b.must(b.m.Close())
		b.must(b.store.Close())
	}
}

// restart forgets everything that is only in memory.
func (b *bed) restart() { b.t.Helper(); b.close(); b.open() }

// crash takes the power: of what was not synced, so many percent survive.
func (b *bed) crash(percent int, seed uint64) {
	b.t.Helper()
	after := b.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 1))})
	b.close()
	b.fs = after
	b.open()
}

// powerLoss takes the power after a command was applied and before it is known to
// be on disk.
func (b *bed) powerLoss(cmd machine.Command, percent int) {
	b.t.Helper()
	_, _, pending, err := b.m.Apply(&machine.Entry{At: b.now, Seed: b.seed, Epoch: 1, Commands: []machine.Command{cmd}})
	b.must(err)
	after := b.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(b.ids), 2))})
	b.must(pending.Wait())
	b.close()
	b.fs = after
	b.open()
}

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
	b.machine()
}

func (b *bed) scope(r kv.Reader) op.Scope {
	return op.Scope{
		R: r, Now: b.now, Space: table.Space{Shard: shard, Partition: partitions.Hash(b.place)}, Partition: b.place,
		Principal: &api.Principal{ID: b.who, Tenant: b.tenant, Administrator: true, PolicyEpoch: 1}, Incarnation: incarnation, Registry: b.registry,
	}
}

// resource installs a resource; edit may change it.
func (b *bed) resource(name string, kind api.ResourceKind, edit func(*api.Resource)) {
	b.t.Helper()
	req := &api.ResourcesConfigureRequest{CommandID: b.id(), Name: name, Kind: kind}
	api.ApplyDefaults(req)
	r := req.Resource()
	r.ID, r.Version = uint32(len(b.resources)+1), 1
	if old := b.resources[name]; old != nil {
		r.ID, r.Version = old.ID, old.Version+1
	}
	if edit != nil {
		edit(&r)
	}
	b.resources[name] = &r
	b.write(func(c *op.Ctx) error { return directory.Install(c, table.EncodeCBOR(nil, &r)) })
}

func (b *bed) principal(p api.Principal) {
	b.t.Helper()
	b.write(func(c *op.Ctx) error { return access.Install(c, table.EncodeCBOR(nil, &p)) })
}

// as lets another principal of the tenant call.
func (b *bed) as(who string, fn func()) {
	b.t.Helper()
	tenant, before := b.tenant, b.who
	b.tenant, b.who = "default", who
	fn()
	b.tenant, b.who = tenant, before
}

// id makes the next command id: version 7, at the bed's time.
func (b *bed) id() string {
	b.ids++
	u := uuid.UUID{6: 0x70, 8: 0x80}
	for i := range 6 {
		u[i] = byte(uint64(b.now) >> (40 - 8*i))
	}
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
	door := b.door()
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
	out := b.entry(machine.NewCommand(o.Operation, b.identity(any(&req).(api.CommandRequest)), fingerprint, encoded, nil))
	b.replayed = out.Replayed
	if out.Err != nil {
		return nil, out.Err
	}
	if h.Finish != nil {
		b.must(h.Finish(door, &req, out.Response))
	}
	return out.Response.(*Resp), nil
}

func (b *bed) door() *op.Door { return &op.Door{Tokens: b.sealer, Now: b.now} }

func (b *bed) identity(req api.CommandRequest) machine.Identity {
	return machine.Identity{
		ID: uuid.MustParse(req.GetCommandID()), Tenant: b.tenant, Principal: b.who, Partition: b.place, Hash: partitions.Hash(b.place),
	}
}

// command is a command as the log has it.
func (b *bed) command(o *api.Operation, req api.CommandRequest) machine.Command {
	b.t.Helper()
	fingerprint, encoded, err := wire.Fingerprint(o.Number, req)
	b.must(err)
	return machine.NewCommand(o, b.identity(req), fingerprint, encoded, nil)
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
	b.committed = pending.Bytes
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

// view runs fn on a snapshot, as a query of the caller.
func (b *bed) view(fn func(v *op.View) error) error {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	v := &op.View{Scope: b.scope(snap), Door: op.Door{Tokens: b.sealer, Now: b.now}}
	if p, err := access.Find(snap, shard, b.tenant, b.who); err == nil && p != nil {
		v.Principal = p
	}
	return fn(v)
}

// ask runs a query.
func ask[Req, Resp any](b *bed, o api.Op[Req, Resp], req *Req) (resp *Resp, err error) {
	b.t.Helper()
	api.ApplyDefaults(req)
	if v := api.Validate(req); len(v) > 0 {
		return nil, api.ValidationError(v)
	}
	h, _ := b.registry.Handler(o.Name)
	err = b.view(func(v *op.View) error {
		r, err := h.Run(v, req)
		if err == nil {
			resp = r.(*Resp)
		}
		return err
	})
	return resp, err
}

// check runs the check of every package over the shard.
func (b *bed) check() map[string]int64 {
	b.t.Helper()
	findings, counts := b.audit()
	for _, f := range findings {
		b.t.Errorf("check: %s at %s: %s", f.Invariant, f.Where, f.Text)
	}
	return counts
}

func (b *bed) audit() ([]op.Finding, map[string]int64) {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	a := op.NewAudit(b.scope(snap), b.registry.Resources())
	b.must(a.Run())
	return a.Findings, a.Counts
}

// rows is every row of groups, sources, queues and the inbox, and of the due
// table, by key. Receipts and the shard's head are none of them.
func (b *bed) rows() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	snap := b.store.NewSnapshot()
	defer snap.Close()
	tables := slices.Concat(Tables(), source.Resource().Tables, queue.Tables(), inbox.Resource().Tables)
	for _, t := range append(tables, table.DueRows.Info()) {
		b.must(snap.Scan([]byte{byte(t.ID)}, []byte{byte(t.ID) + 1}, false, func(k, v []byte) (bool, error) {
			if t.ID != table.Due || k[11] != byte(table.DueReceipts) {
				out[string(k)] = string(v)
			}
			return true, nil
		}))
	}
	return out
}

// same fails unless no row changed since before.
func (b *bed) same(what string, before map[string]string) {
	b.t.Helper()
	if now := b.rows(); !maps.Equal(now, before) {
		b.t.Errorf("%s changed rows: %s", what, changes(before, now))
	}
}

func changes(before, now map[string]string) (out string) {
	all := maps.Clone(before)
	maps.Copy(all, now)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		was, had := before[k]
		is, has := now[k]
		if had != has || was != is {
			out += fmt.Sprintf("\n  table %d, key %x: %x -> %x", k[0], k[1:], was, is)
		}
	}
	return out
}

// code is the code and reason of an error, "" for none.
func code(err error) string {
	if f := fault.From(err); f != nil {
		return string(f.Code) + "/" + f.Reason
	}
	if f, ok := err.(*fault.Error); err != nil && (!ok || f != nil) {
		return err.Error()
	}
	return ""
}

func facts(err error) map[string]string {
	if f := fault.From(err); f != nil {
		return f.Facts
	}
	return nil
}
