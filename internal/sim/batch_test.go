package sim

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
)

// A hundred events are published by one command, the first alone is acknowledged,
// and the power goes: all others are delivered, each once.
func TestCase102_OfEventsOfOneCommandNoneIsFinishedWithAnother(t *testing.T) {
	mem := vfs.NewCrashableMem()
	open := func() *keyload.DB {
		t.Helper()
		store, err := kv.Open("store", kv.Options{FS: mem})
		if err != nil {
			t.Fatal(err)
		}
		db, err := keyload.OpenStore(store, keyload.Options{Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, ctx := open(), t.Context()
	_, err := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "news", Kind: api.KindTopic})
	ok(err)
	_, err = db.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: follower})
	ok(err)
	var events []api.Event
	for n := range 100 {
		events = append(events, api.Event{EventID: fmt.Sprint(n + 1), Type: "x", Payload: api.JSON("1")})
	}
	_, err = db.Commit(ctx, api.PartitionRef{}, keyload.Publish("news", events...))
	ok(err)
	got, err := db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: follower, MaxEvents: 1})
	ok(err)
	_, err = db.CompleteEvents(ctx, follower, api.CompleteItem{Token: got.Deliveries[0].Token, Action: api.ActionAck})
	ok(err)
	left := mem.CrashClone(vfs.CrashCloneCfg{})
	ok(db.Close())
	mem = left
	db = open()
	got, err = db.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: follower, MaxEvents: 256})
	ok(err)
	if len(got.Deliveries) != 99 {
		t.Errorf("%d events are delivered, want 99", len(got.Deliveries))
	}
	for i, d := range got.Deliveries {
		if d.Event.Position != uint64(i+2) {
			t.Errorf("delivery %d is event %d", i, d.Event.Position)
		}
	}
	ok(db.Close())
}
