package stream

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
	"github.com/keyload/keyload/internal/wire"
)

// bed is one partition with a stream set "accounts".
type bed struct {
	t        *testing.T
	registry *op.Registry
	store    *kv.Store
	tx       *kv.Tx
	position uint64
	hints    []op.Hint // of the last command
}

var partition = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}

func newBed(t *testing.T) *bed {
	t.Helper()
	store, err := kv.Open("db", kv.Options{FS: vfs.NewMem(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := op.NewRegistry([]op.Resource{source.Resource(), Resource()})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, registry: registry, store: store, tx: store.NewTx()}
	record, err := wire.EncodeLog(&api.Resource{
		Tenant: "default", Database: "main", Domain: "main", Name: "accounts", Kind: api.KindStreamSet, ID: 1, Version: 1,
		Source: &api.SourcePolicy{MaxEvents: 1000, MaxBytes: 1 << 30, OnFull: api.OnFullReject, EventIDRetentionSeconds: 60},
	})
	if err == nil {
		err = b.apply(func(c *op.Ctx) error { return directory.Install(c, record) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) scope() op.Scope {
	return op.Scope{
		Now: 1_700_000_000_000, Space: table.Space{Shard: 1, Partition: [16]byte{5}}, Partition: partition,
		Principal: &api.Principal{ID: "root", Administrator: true}, Registry: b.registry,
	}
}

func (b *bed) apply(fn func(c *op.Ctx) error) error {
	b.t.Helper()
	b.position++
	b.tx.Begin()
	c := op.NewCtx(b.scope(), b.tx, [16]byte{byte(b.position)}, b.position, 1, 1)
	err := fn(c)
	if err != nil {
		b.tx.Drop()
	}
	b.hints = c.Hints()
	if _, err := b.tx.Commit(); err != nil {
		b.t.Fatal(err)
	}
	return err
}

func (b *bed) append(id string, generation uint64, expected api.ExpectedStream, events ...string) (r api.MutationResult, err error) {
	b.t.Helper()
	m := &api.AppendEvents{StreamSet: "accounts", StreamID: id, Generation: generation, Expected: expected}
	for _, e := range events {
		m.Events = append(m.Events, api.Event{EventID: e, Type: "Moved", Payload: api.JSON("1"), SchemaVersion: 1})
	}
	err = b.apply(func(c *op.Ctx) error {
		r, err = Resource().Mutations[0].Apply(c, 0, &api.Mutation{AppendEvents: m})
		return err
	})
	return r, err
}

func (b *bed) view(fn func(v *op.View)) {
	snap := b.store.NewSnapshot()
	defer snap.Close()
	s := b.scope()
	s.R = snap
	fn(&op.View{Scope: s, Door: op.Door{Tokens: token.NewSealer([16]byte{}, token.Keys{bytes.Repeat([]byte{1}, 32)})}})
}

func (b *bed) read(id string, change func(r *api.StreamsReadRequest)) (resp *api.StreamsReadResponse, err error) {
	b.t.Helper()
	req := ask(id)
	if change != nil {
		change(req)
	}
	b.view(func(v *op.View) {
		r, failed := Resource().Handlers[0].Run(v, req)
		resp, _ = r.(*api.StreamsReadResponse)
		err = failed
	})
	return resp, err
}

func ask(id string) *api.StreamsReadRequest {
	return &api.StreamsReadRequest{
		Stream:    api.StreamRef{Partition: partition, StreamSet: "accounts", StreamID: id, Generation: 1},
		Direction: api.Forward, Limit: 100, MaxBytes: 1 << 20,
	}
}

func ids(resp *api.StreamsReadResponse) (out []string) {
	for _, e := range resp.Events {
		out = append(out, fmt.Sprintf("%d:%s", e.Position, e.EventID))
	}
	return out
}

func TestAnAppendAnswersTheRevisionOfTheStream(t *testing.T) {
	b := newBed(t)
	r, err := b.append("a", 1, api.ExpectNoStream(), "x", "y")
	if err != nil || r.Kind != "appendEvents" || r.FirstPosition != 1 || r.Position != 2 || r.EventIDs != nil {
		t.Errorf("first append: %+v, %v", r, err)
	}
	if _, err := b.append("a", 1, api.ExpectExact(1), "z"); fault.CodeOf(err) != fault.RevisionConflict {
		t.Errorf("append at another revision: %v", err)
	}
	r, err = b.append("a", 1, api.ExpectExact(2), "z", "")
	if err != nil || r.Position != 4 || len(r.EventIDs) != 2 || r.EventIDs[0] != "z" || r.EventIDs[1] == "" {
		t.Errorf("append at its revision: %+v, %v", r, err)
	}
}

func TestAStreamIsReadForwardAndBackward(t *testing.T) {
	b := newBed(t)
	if _, err := b.append("a", 1, api.ExpectAny(), "x", "y", "z"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(r *api.StreamsReadRequest)
		want   []string
	}{
		{"from the start", nil, []string{"1:x", "2:y", "3:z"}},
		{"after the first", func(r *api.StreamsReadRequest) { r.AfterPosition = 1 }, []string{"2:y", "3:z"}},
		{"backward", func(r *api.StreamsReadRequest) { r.Direction = api.Backward }, []string{"3:z", "2:y", "1:x"}},
		{"backward before the third", func(r *api.StreamsReadRequest) { r.Direction, r.AfterPosition = api.Backward, 3 }, []string{"2:y", "1:x"}},
		{"the newest", func(r *api.StreamsReadRequest) { r.Direction, r.Limit = api.Backward, 1 }, []string{"3:z"}},
	} {
		resp, err := b.read("a", c.change)
		if err != nil || !slices.Equal(ids(resp), c.want) || resp.Tail != 3 || resp.FirstAvailable != 1 || resp.Cursor == "" {
			t.Errorf("%s: %+v, %v; want %v", c.name, resp, err, c.want)
		}
	}
}

func TestAStreamNobodyAppendedToIsEmptyAndCanBeWaitedFor(t *testing.T) {
	b := newBed(t)
	resp, err := b.read("new", nil)
	if err != nil || len(resp.Events) != 0 || resp.Tail != 0 || resp.FirstAvailable != 1 || resp.Cursor == "" {
		t.Fatalf("empty stream: %+v, %v", resp, err)
	}
	h := Resource().Handlers[0]
	req := ask("new")
	req.WaitMillis = 250
	var keys []string
	var class string
	b.view(func(v *op.View) { keys, class, err = h.WaitKeys(v, req) })
	if err != nil || class != "" || h.WaitMillis(req) != 250 || !h.WaitAgain(resp) {
		t.Errorf("it is not waited for: %v", err)
	}
	if _, err := b.append("other", 1, api.ExpectAny(), "x"); err != nil || b.hints[0].Key == keys[0] {
		t.Errorf("another stream wakes it: %v", err)
	}
	if _, err := b.append("new", 1, api.ExpectAny(), "x"); err != nil || b.hints[0].Key != keys[0] {
		t.Errorf("waits for %q, woken by %+v, %v", keys, b.hints, err)
	}
	resp, err = b.read("new", func(r *api.StreamsReadRequest) { r.Cursor = resp.Cursor })
	if err != nil || !slices.Equal(ids(resp), []string{"1:x"}) || h.WaitAgain(resp) {
		t.Errorf("after the first event: %+v, %v", resp, err)
	}
}

func TestEachGenerationOfAStreamIsItsOwnHistory(t *testing.T) {
	b := newBed(t)
	for _, g := range []uint64{1, 2, 7} {
		if r, err := b.append("a", g, api.ExpectNoStream(), "x"); err != nil || r.Position != 1 {
			t.Errorf("generation %d: %+v, %v", g, r, err)
		}
	}
	resp, err := b.read("a", func(r *api.StreamsReadRequest) { r.Stream.Generation = 7 })
	if err != nil || !slices.Equal(ids(resp), []string{"1:x"}) {
		t.Errorf("generation 7: %+v, %v", resp, err)
	}
	_, err = b.read("a", func(r *api.StreamsReadRequest) { r.Cursor = resp.Cursor })
	if fault.CodeOf(err) != fault.TokenInvalidated {
		t.Errorf("a cursor of generation 7 in generation 1: %v", err)
	}
}

func TestStreamsLiveInAStreamSet(t *testing.T) {
	b := newBed(t)
	_, err := b.read("a", func(r *api.StreamsReadRequest) { r.Stream.StreamSet = "none" })
	if fault.CodeOf(err) != fault.NotFound {
		t.Errorf("unknown stream set: %v", err)
	}
	var keysErr error
	b.view(func(v *op.View) {
		req := ask("a")
		req.Stream.StreamSet = "none"
		_, _, keysErr = Resource().Handlers[0].WaitKeys(v, req)
	})
	if fault.CodeOf(keysErr) != fault.NotFound {
		t.Errorf("waiting in an unknown stream set: %v", keysErr)
	}
	if _, err := b.append("a", 1, api.ExpectAny(), "x"); err != nil {
		t.Fatal(err)
	}
	var a *op.Audit
	b.view(func(v *op.View) {
		a = op.NewAudit(v.Scope, []op.Resource{source.Resource(), directory.Resource(nil)})
		a.Partitions = map[[16]byte]bool{v.Space.Partition: true}
		err = a.Run()
	})
	if err != nil || len(a.Findings) != 0 || a.Counts["events"] != 1 {
		t.Errorf("check: %v, %v, %v", err, a.Findings, a.Counts)
	}
}
