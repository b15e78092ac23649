package check_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// busy opens a store whose callers change something of every kind until they are
// told to stop.
func busy(t *testing.T, db *keyload.DB) (stop func()) {
	t.Helper()
	for _, r := range []api.ResourcesConfigureRequest{
		{Name: "docs", Kind: api.KindCollection, Collection: &api.CollectionPolicy{Indexes: []api.IndexDefinition{{Name: "n", Paths: []string{"/n"}}, {Name: "u", Paths: []string{"/u"}, Unique: true}}}},
		{Name: "jobs", Kind: api.KindQueue}, {Name: "news", Kind: api.KindTopic, Source: &api.SourcePolicy{MaxEvents: 40, OnFull: api.OnFullTrim}},
	} {
		_, err := db.ConfigureResource(ctx, &r)
		must(t, err)
	}
	ends, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 3 {
		p := at(fmt.Sprint("p", i))
		g := client.Group(client.Topic(p, "news"), "g")
		wg.Go(func() {
			for n := 0; ends.Err() == nil; n++ {
				work(t, db, p, g, n)
			}
		})
	}
	wg.Go(func() {
		for n := uint64(1); ends.Err() == nil; n++ {
			_, err := db.ConfigurePrincipal(ctx, api.Principal{ID: fmt.Sprint("p", n%5), PolicyEpoch: n})
			name := fmt.Sprint("r", n%3)
			_, err2 := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: name, Kind: api.KindQueue})
			_, err3 := db.DeleteResource(ctx, &api.ResourcesDeleteRequest{Name: name})
			if err := errors.Join(err, err2, err3); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// work is one round of a caller.
func work(t *testing.T, db *keyload.DB, p api.PartitionRef, g api.GroupRef, n int) {
	id := fmt.Sprint("m", n)
	_, err := db.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: g})
	_, err2 := db.Commit(ctx, p, client.Put("docs", fmt.Sprint("d", n%20), map[string]int{"n": n, "u": n}),
		client.Publish("news", event(n, "")), client.Enqueue("jobs", api.Message{MessageID: id, Payload: api.Of(n)}))
	if err := errors.Join(err, err2); err != nil {
		t.Error(err)
		return
	}
	lane := client.Lane(p, "jobs")
	got, err := db.Receive(ctx, &api.QueuesReceiveRequest{Lane: lane, MaxMessages: 3, LeaseSeconds: 1})
	if err == nil && len(got.Deliveries) > 0 {
		_, err = db.Complete(ctx, lane, api.CompleteItem{Token: got.Deliveries[0].Token, Action: api.ActionAck})
	}
	events, err2 := db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: g, MaxEvents: 3, LeaseSeconds: 1})
	if err2 == nil && len(events.Deliveries) > 0 {
		_, err2 = db.CompleteEvents(ctx, g, api.CompleteItem{Token: events.Deliveries[len(events.Deliveries)-1].Token, Action: api.ActionAck})
	}
	if n%7 == 3 {
		_, err3 := db.Commit(ctx, p, client.Delete("docs", fmt.Sprint("d", (n-1)%20)))
		if fault.CodeOf(err3) != fault.NotFound {
			err = errors.Join(err, err3)
		}
	}
	if err := errors.Join(err, err2); err != nil {
		t.Error(err)
	}
}

func TestEveryShardIsSoundOnEverySnapshotWhileCommandsGoOn(t *testing.T) {
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
	must(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 2, Durability: api.DurableProcess})
	must(t, err)
	stop := busy(t, db)
	for range 40 {
		report, err := check.Remote(ctx, db, nil)
		must(t, err)
		for _, f := range report.Findings {
			t.Errorf("%+v", f)
		}
		if report.Shards != 2 || report.Rows == 0 || report.Incarnation == "" {
			t.Errorf("%+v", report)
		}
	}
	stop()
	must(t, db.Close())
}

func TestAShardThatLagsBehindTheCatalogIsComparedWithTheCatalogAsItWas(t *testing.T) {
	w := full(t)
	copies := func() map[string]string {
		out := w.rows()
		for k := range out {
			switch id := table.ID(k[0]); {
			case len(k) < 3 || k[2] != 1, id != table.ResourceByName && id != table.ResourceByID && id != table.DirectoryHead && id != table.Principal:
				delete(out, k)
			}
		}
		return out
	}
	before := copies()
	w.make(api.ResourcesConfigureRequest{Name: "late", Kind: api.KindTopic})
	_, err := w.ConfigurePrincipal(ctx, api.Principal{ID: "ann", PolicyEpoch: 3})
	w.must(err)
	w.back(copies(), before)
	if w.finds() {
		t.Error("the check finds something in a shard that lags")
	}
	before[string([]byte{byte(table.DirectoryHead), 0, 1})] = w.rows()[string([]byte{byte(table.DirectoryHead), 0, 0})]
	w.back(copies(), before)
	if !w.finds() {
		t.Error("the check finds nothing in a shard that says a revision it has not")
	}
}

func TestOnlyAnAdministratorMayCheckAndOnlyShardsThatAreThere(t *testing.T) {
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
	must(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 2, Durability: api.DurableProcess})
	must(t, err)
	_, err = db.ConfigurePrincipal(ctx, api.Principal{ID: "ann", Roles: []api.Role{api.RoleAdmin}, PolicyEpoch: 1})
	must(t, err)
	_, err = api.Call(ctx, db.As("default", "ann"), api.AdminCheck, &api.AdminCheckRequest{})
	if fault.CodeOf(err) != fault.PermissionDenied {
		t.Errorf("a principal of a tenant: %v", err)
	}
	for shard, code := range map[int64]fault.Code{2: "", 3: fault.NotFound, 65535: fault.NotFound, 65536: fault.Validation, -1: fault.Validation} {
		resp, err := db.Check(ctx, shard)
		if fault.CodeOf(err) != code || err == nil && (resp.Shard != shard || resp.Shards != 3) {
			t.Errorf("shard %d: %+v, %v", shard, resp, err)
		}
	}
	must(t, db.Close())
}

// A check that is under way refuses another, and ends when its caller leaves; then
// there is room for the next.
func TestOneCheckAtATimeWhichEndsWhenItsCallerLeaves(t *testing.T) {
	mem := vfs.NewMem()
	store, err := kv.Open("store", kv.Options{FS: mem, NoSync: true})
	must(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 1, Durability: api.DurableProcess})
	must(t, err)
	_, err = db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue})
	must(t, err)
	var ms []api.Mutation
	for i := range 250 {
		ms = append(ms, client.Enqueue("jobs", api.Message{MessageID: fmt.Sprint("m", i), Payload: api.Of(strings.Repeat("x", 500))}))
	}
	for range 3 {
		for i := range ms {
			ms[i].Enqueue.Message.MessageID += "+"
		}
		_, err = db.Commit(ctx, api.PartitionRef{}, ms...)
		must(t, err)
	}
	must(t, db.Close())

	// A read of the disk waits, so that the check is under way for sure.
	var armed atomic.Bool
	reading, goOn := make(chan struct{}), make(chan struct{})
	slow := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && armed.CompareAndSwap(true, false) {
			close(reading)
			<-goOn
		}
		return nil
	}))
	store, err = kv.Open("store", kv.Options{FS: slow, NoSync: true, MustExist: true})
	must(t, err)
	db, err = keyload.OpenStore(store, keyload.Options{Durability: api.DurableProcess})
	must(t, err)
	armed.Store(true)
	caller, leave := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		_, err := db.Check(caller, 1)
		ended <- err
	}()
	<-reading
	if _, err := db.Check(ctx, 1); fault.CodeOf(err) != fault.ResourceExhausted || fault.From(err).Reason != "check_running" {
		t.Errorf("a second check: %v", err)
	}
	leave()
	close(goOn)
	if err := <-ended; fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("the first one ended with %v", err)
	}
	if resp, err := db.Check(ctx, 1); err != nil || len(resp.Findings) != 0 {
		t.Errorf("the next one: %+v, %v", resp, err)
	}
	must(t, db.Close())
}

func TestProgressRisesToWhatWasReadAndEndsOnce(t *testing.T) {
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
	must(t, err)
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 1, Durability: api.DurableProcess})
	must(t, err)
	_, err = db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "jobs", Kind: api.KindQueue})
	must(t, err)
	for n := range 10 {
		var ms []api.Mutation
		for i := range 200 {
			ms = append(ms, client.Enqueue("jobs", api.Message{MessageID: fmt.Sprint(n, "-", i), Payload: api.Of(i)}))
		}
		_, err = db.Commit(ctx, api.PartitionRef{}, ms...)
		must(t, err)
	}
	for _, flushed := range []bool{false, true} { // nothing is in files, and the estimate too low; then all is
		if flushed {
			must(t, store.Flush())
		}
		last, ends, calls := int64(-1), 0, 0
		report, err := check.Store(t.Context(), store, func(_ check.Step, rows, estimate int64) {
			if calls++; rows <= last || estimate < rows {
				t.Errorf("%d of %d rows after %d", rows, estimate, last)
			}
			last = rows
			if rows == estimate {
				ends++
			}
		})
		must(t, err)
		if ends != 1 || last != report.Rows || calls < 5 {
			t.Errorf("it ended %d times, at %d of %d rows, after %d calls", ends, last, report.Rows, calls)
		}
		if e := kv.RowsEstimate(store); flushed && (e < report.Rows/2 || e > 2*report.Rows) {
			t.Errorf("the estimate is %d of %d rows", e, report.Rows)
		}
	}
	must(t, db.Close())
}
