package check_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/resource/partitions"
)

var ctx = context.Background()

// start is the instant at which every world begins.
const start = int64(1_800_000_000_000)

const shards = 2

// world is a store whose clock and due work move by hand, filled with rows of every
// kind there is.
type world struct {
	client.Calls
	t        *testing.T
	store    *kv.Store
	e        *engine.Engine
	now      int64
	drawn    uint32
	written  int               // by tests, below everything
	timeless bool              // the next command id carries no time
	numbers  map[string]uint32 // of resources
	// going are how the keys of rows begin, after the table, that are being removed.
	going []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: start, numbers: map[string]uint32{}}
	w.Calls = client.CallsOf(w)
	var err error
	w.store, err = kv.Open("store", kv.Options{FS: vfs.NewMem(), CacheBytes: 8 << 20, NoSync: true})
	w.must(err)
	w.open()
	t.Cleanup(func() { w.must(errors.Join(w.e.Close(), w.store.Close())) })
	return w
}

func (w *world) open() {
	w.t.Helper()
	var err error
	w.e, err = engine.Open(engine.Config{Store: w.store, Shards: shards, Now: func() time.Time { return time.UnixMilli(w.now) }})
	w.must(err)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Do carries out an operation as root, under the next command id.
func (w *world) Do(ctx context.Context, o *api.Operation, req, resp any) error {
	if c, ok := req.(api.CommandRequest); ok {
		c.SetCommandID(w.id())
	}
	got, err := w.e.Do(ctx, w.e.Root(), o, req)
	if err == nil {
		reflect.ValueOf(resp).Elem().Set(reflect.ValueOf(got).Elem())
	}
	return err
}

// id is a command id of version 7, or of version 4 when one without a time is asked
// for.
func (w *world) id() string {
	u := uuid.UUID{6: 0x40, 8: 0x80}
	if !w.timeless {
		binary.BigEndian.PutUint64(u[:8], uint64(w.now)<<16)
		u[6] = 0x70
	}
	w.timeless = false
	w.drawn++
	binary.BigEndian.PutUint32(u[12:], w.drawn)
	return u.String()
}

// tick lets each shard do one step of what is due.
func (w *world) tick() {
	w.t.Helper()
	for shard := range uint16(shards + 1) {
		_, err := engine.Chores{Engine: w.e}.Tick(ctx, shard)
		w.must(err)
	}
}

// settle lets all of it happen.
func (w *world) settle() {
	w.t.Helper()
	for range 100 {
		w.tick()
		if !slices.ContainsFunc([]uint16{0, 1, 2}, func(shard uint16) bool {
			next, _ := engine.Chores{Engine: w.e}.NextDue(shard)
			return next != 0 && next <= w.now
		}) {
			return
		}
	}
	w.t.Fatal("due work never ends")
}

// at is a partition; main and other are in different shards.
func at(key string) api.PartitionRef {
	return api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: key}
}

// elsewhere is a partition in another shard than main.
func elsewhere() api.PartitionRef {
	home := partitions.ShardOf(partitions.Hash(at("main")), shards)
	for i := 0; ; i++ {
		if p := at(fmt.Sprint("other", i)); partitions.ShardOf(partitions.Hash(p), shards) != home {
			return p
		}
	}
}

func (w *world) make(req api.ResourcesConfigureRequest) *api.Resource {
	w.t.Helper()
	resp, err := w.ConfigureResource(ctx, &req)
	w.must(err)
	w.numbers[req.Name] = resp.Resource.ID
	return &resp.Resource
}

func (w *world) commit(p api.PartitionRef, ms ...api.Mutation) {
	w.t.Helper()
	_, err := w.Commit(ctx, p, ms...)
	w.must(err)
}

// restored gives the store an earlier history.
func (w *world) restored() {
	w.t.Helper()
	w.must(w.e.Close())
	_, err := engine.Restore(w.t.Context(), w.store, engine.RestoreOptions{Now: w.now})
	w.must(err)
	w.open()
	_, err = w.ResumeDispatch(ctx)
	w.must(err)
}

// full fills a world with rows of every table.
func full(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.catalog()
	w.restored()
	w.nodes()
	for _, p := range []api.PartitionRef{at("main"), elsewhere()} {
		w.documents(p)
		w.events(p)
		w.queues(p)
		w.groups(p)
		w.inputs(p)
	}
	w.now += 1000
	w.settle()
	w.underWay()
	w.replicated()
	return w
}

// replicated lets the store be a replica of a cluster, as far as rows tell.
func (w *world) replicated() {
	w.t.Helper()
	tx := w.store.NewTx()
	tx.Begin()
	for shard := range uint16(shards + 1) {
		machine.PutApplied(tx, shard, &machine.Applied{Index: 40, Term: 3, Node: 2, Voters: []uint64{1, 2, 5}, Learners: []uint64{6, 7}})
	}
	pending, err := tx.Commit()
	w.must(err)
	w.must(errors.Join(pending.Wait(), tx.Close()))
}

func (w *world) catalog() {
	w.t.Helper()
	indexed := api.CollectionPolicy{TombstoneRetentionSeconds: 1000, Indexes: []api.IndexDefinition{
		{Name: "age", Paths: []string{"/age", "/name"}}, {Name: "mail", Paths: []string{"/mail"}, Unique: true},
	}}
	small := api.QueuePolicy{
		MaxAttempts: 2, DeadLetter: api.DeadLetterPolicy{MaxMessages: 1}, MaxLeaseSeconds: 900,
		Retry: api.RetryPolicy{BaseMillis: 60_000, MaxMillis: 60_000, Jitter: api.JitterNone},
	}
	for _, r := range []api.ResourcesConfigureRequest{
		{Name: "people", Kind: api.KindCollection, Collection: &indexed},
		{Name: "plain", Kind: api.KindCollection},
		{Name: "crowd", Kind: api.KindCollection, Collection: &indexed},
		{Name: "jobs", Kind: api.KindQueue, Queue: &small},
		{Name: "mails", Kind: api.KindQueue, Queue: &api.QueuePolicy{MaxAttempts: 4}},
		{Name: "news", Kind: api.KindTopic, Source: &api.SourcePolicy{MaxAgeSeconds: 100_000, EventIDRetentionSeconds: 5000}},
		{Name: "orders", Kind: api.KindStreamSet},
		{Name: "gone", Kind: api.KindQueue},
	} {
		w.make(r)
	}
	_, err := w.DeleteResource(ctx, &api.ResourcesDeleteRequest{Name: "gone"})
	w.must(err)
	for epoch := uint64(1); epoch <= 2; epoch++ {
		for _, name := range []string{"ann", "bob"} {
			_, err = w.ConfigurePrincipal(ctx, api.Principal{ID: name, Roles: []api.Role{api.RoleWorker}, PolicyEpoch: epoch})
			w.must(err)
		}
	}
	for _, name := range []string{"ann", "bob"} {
		_, err = w.CreateAPIKey(ctx, &api.APIKeysCreateRequest{PrincipalID: name, ExpiresAt: api.Time(w.now + 1e10)})
		w.must(err)
	}
	key, err := w.CreateAPIKey(ctx, &api.APIKeysCreateRequest{PrincipalID: "ann"})
	w.must(err)
	_, err = w.RevokeAPIKey(ctx, &api.APIKeysRevokeRequest{KeyID: key.KeyID})
	w.must(err)
}

func (w *world) documents(p api.PartitionRef) {
	w.t.Helper()
	w.commit(p,
		client.Put("people", "p1", map[string]any{"name": "Ada", "age": 36, "mail": "a@x"}),
		client.Put("people", "p2", map[string]any{"name": "Bo", "age": 2, "mail": "b@x"}),
		client.Put("people", "p3", map[string]any{"name": "Cy"}),
		client.Put("people", "p4", map[string]any{"name": "Di", "mail": "d@x"}),
		client.Put("plain", "q1", map[string]any{"free": true}))
	w.commit(p, client.Delete("people", "p4"))
	w.timeless = true
	w.commit(p, client.Put("people", "p2", map[string]any{"name": "Bo", "age": 3, "mail": "b@x"}))
	_, err := w.Commit(ctx, p, client.PutAt("people", "p1", 99, map[string]any{"name": "no"}))
	if err == nil {
		w.t.Fatal("a put of a revision that is not there was accepted")
	}
}

func event(n int, key string) api.Event {
	return api.Event{EventID: fmt.Sprint("e", n), Type: "made", Payload: api.Of(n), CorrelationID: key, Headers: map[string]string{"h": "v"}}
}

// events leaves a topic of which some events are purged, some of these with their
// rows, and a stream.
func (w *world) events(p api.PartitionRef) {
	w.t.Helper()
	for i := range 30 {
		w.commit(p, client.Publish("news", event(i+1, map[bool]string{true: "x", false: ""}[i == 20 || i == 21])))
	}
	w.commit(p, client.PurgeTopic("news", 4))
	w.settle()
	w.commit(p, client.Append("orders", "o1", event(1, ""), event(2, "")), client.Append("orders", "o2", event(1, "")))
}
