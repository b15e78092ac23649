package inbox

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
	"github.com/keyload/keyload/internal/resource/batch"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/queue"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
	"github.com/keyload/keyload/internal/wire"
)

const (
	shard = 1
	start = int64(1_800_000_000_000)
)

var (
	incarnation = [16]byte{4, 5, 6}
	place       = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
)

// bed is one shard with a real machine, and the queues "in" and "out".
type bed struct {
	t        *testing.T
	store    *kv.Store
	m        *machine.Machine
	registry *op.Registry
	sealer   *token.Sealer
	now      int64
	ids      int
}

func newBed(t *testing.T, in api.QueuePolicy) *bed {
	t.Helper()
	b := &bed{t: t, now: start, sealer: token.NewSealer(incarnation, token.Keys{bytes.Repeat([]byte{7}, 32)})}
	var err error
	b.registry, err = op.NewRegistry([]op.Resource{
		partitions.Resource(), access.Resource(), directory.Resource(nil),
		queue.Resource(), Resource(), batch.Resource(), feedResource(),
	})
	b.must(err)
	b.store, err = kv.Open("db", kv.Options{FS: vfs.NewMem(), NoSync: true})
	b.must(err)
	tx := b.store.NewTx()
	tx.Begin()
	for i, p := range []api.QueuePolicy{in, {MaxMessages: 3}} {
		b.install(tx, []string{"in", "out"}[i], uint32(i+1), p)
	}
	topic := api.Resource{Tenant: "default", Database: "main", Domain: "main", Name: "feed", Kind: api.KindTopic, ID: feed, Version: 1}
	b.must(directory.Install(op.NewCtx(op.Scope{Space: table.Space{Shard: shard}}, tx, [16]byte{9}, 1, 1, 1), table.EncodeCBOR(nil, &topic)))
	pending, err := tx.Commit()
	b.must(err)
	b.must(pending.Wait())
	b.must(tx.Close())
	b.m, err = machine.New(b.store, machine.Config{Shard: shard, Incarnation: incarnation, Durability: api.DurableDisk, Registry: b.registry})
	b.must(err)
	t.Cleanup(func() {
		b.check()
		b.must(b.m.Close())
		b.must(b.store.Close())
	})
	return b
}

func (b *bed) install(tx *kv.Tx, name string, id uint32, p api.QueuePolicy) {
	b.t.Helper()
	req := &api.ResourcesConfigureRequest{CommandID: b.id(), Name: name, Kind: api.KindQueue, Queue: &p}
	api.ApplyDefaults(req)
	r := req.Resource()
	r.ID, r.Version = id, 1
	c := op.NewCtx(op.Scope{Space: table.Space{Shard: shard}}, tx, [16]byte{9}, 1, 1, 1)
	b.must(directory.Install(c, table.EncodeCBOR(nil, &r)))
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("failed: %v", err)
	}
}

func (b *bed) id() string {
	b.ids++
	u := uuid.UUID{6: 0x70, 8: 0x80}
	for i := range 6 {
		u[i] = byte(uint64(b.now) >> (40 - 8*i))
	}
	copy(u[9:], fmt.Sprintf("%07d", b.ids))
	return u.String()
}

func (b *bed) lane(queue string) api.LaneRef { return api.LaneRef{Partition: place, Queue: queue} }

func call[Req, Resp any](b *bed, o api.Op[Req, Resp], in *Req) (*Resp, error) {
	b.t.Helper()
	req := *in
	api.ApplyDefaults(&req)
	if v := api.Validate(&req); len(v) > 0 {
		return nil, api.ValidationError(v)
	}
	h, _ := b.registry.Handler(o.Name)
	fingerprint, encoded, err := wire.Fingerprint(o.Number, &req)
	b.must(err)
	door := &op.Door{Tokens: b.sealer, Now: b.now}
	if h.Prepare != nil {
		if _, err := h.Prepare(door, &req); err != nil {
			return nil, err
		}
	}
	at := any(&req).(api.PartitionRequest).TargetPartition()
	cmd := machine.NewCommand(o.Operation, machine.Identity{
		ID: uuid.MustParse(any(&req).(api.CommandRequest).GetCommandID()), Principal: access.Root, Partition: at, Hash: partitions.Hash(at),
	}, fingerprint, encoded, nil)
	out := b.entry(cmd)
	if out.Err != nil {
		return nil, out.Err
	}
	if h.Finish != nil {
		b.must(h.Finish(door, &req, out.Response))
	}
	return out.Response.(*Resp), nil
}

func (b *bed) entry(cmd machine.Command) machine.Outcome {
	b.t.Helper()
	outs, _, pending, err := b.m.Apply(&machine.Entry{At: b.now, Seed: 1, Epoch: 1, Commands: []machine.Command{cmd}})
	b.must(err)
	b.must(pending.Wait())
	return outs[0]
}

func (b *bed) later(millis int64) {
	b.t.Helper()
	b.now += millis
	for range 10_000 {
		if next := b.m.NextDue(); next == 0 || next > b.now {
			return
		}
		b.entry(machine.Tick())
	}
	b.t.Fatalf("due work never ends")
}

func (b *bed) check() map[string]int64 {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	a := op.NewAudit(op.Scope{R: snap, Now: b.now, Space: table.Space{Shard: shard}, Registry: b.registry}, b.registry.Resources())
	b.must(a.Run())
	for _, f := range a.Findings {
		b.t.Errorf("check: %s at %s: %s", f.Invariant, f.Where, f.Text)
	}
	return a.Counts
}

// rows are the rows of the queues and the inbox.
func (b *bed) rows() map[string]string {
	out := map[string]string{}
	snap := b.store.NewSnapshot()
	defer snap.Close()
	for _, t := range append(queue.Tables(), Resource().Tables...) {
		b.must(snap.Scan([]byte{byte(t.ID)}, []byte{byte(t.ID) + 1}, false, func(k, v []byte) (bool, error) {
			out[string(k)] = string(v)
			return true, nil
		}))
	}
	return out
}

func (b *bed) same(what string, before map[string]string) {
	b.t.Helper()
	now := b.rows()
	for k, v := range now {
		if before[k] != v {
			b.t.Errorf("%s changed a row of table %d", what, k[0])
		}
	}
	if len(now) != len(before) {
		b.t.Errorf("%s: %d rows, were %d", what, len(now), len(before))
	}
}

func (b *bed) enqueue(queue, id string) {
	b.t.Helper()
	_, err := call(b, api.CommandsCommit, &api.CommandsCommitRequest{CommandID: b.id(), Partition: place, Mutations: []api.Mutation{output(queue, id)}})
	b.must(err)
}

func (b *bed) receive() api.Delivery {
	b.t.Helper()
	r, err := call(b, api.QueuesReceive, &api.QueuesReceiveRequest{RequestID: b.id(), Lane: b.lane("in")})
	b.must(err)
	if len(r.Deliveries) != 1 {
		b.t.Fatalf("received nothing: %s", r.Reason)
	}
	return r.Deliveries[0]
}

func output(queue, id string) api.Mutation {
	return api.Mutation{Enqueue: &api.Enqueue{Queue: queue, Message: api.Message{MessageID: id, Payload: api.Of(id)}}}
}

func (b *bed) process(d api.Delivery, scope string, effects ...api.Mutation) (*api.QueuesProcessResponse, error) {
	b.t.Helper()
	return call(b, api.QueuesProcess, &api.QueuesProcessRequest{
		CommandID: b.id(), Lane: b.lane("in"), Token: d.Token, HandlerScope: scope, Effects: effects,
	})
}

func (b *bed) count(queueName string) int64 {
	b.t.Helper()
	h, _ := b.registry.Handler(api.QueuesStatus.Name)
	snap := b.store.NewSnapshot()
	defer snap.Close()
	v := &op.View{Scope: op.Scope{R: snap, Now: b.now, Space: table.Space{Shard: shard, Partition: partitions.Hash(place)}, Partition: place, Principal: &api.Principal{Administrator: true}}}
	r, err := h.Run(v, &api.QueuesStatusRequest{Lane: b.lane(queueName)})
	b.must(err)
	return r.(*api.QueuesStatusResponse).StoredMessages
}

func code(err error) string {
	if f := fault.From(err); f != nil {
		return string(f.Code) + "/" + f.Reason
	}
	return ""
}

func facts(err error) map[string]string {
	if f := fault.From(err); f != nil {
		return f.Facts
	}
	return nil
}
