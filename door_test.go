package keyload_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
)

// memory opens a store on a file system in memory.
func memory(t *testing.T) *keyload.DB {
	t.Helper()
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	db, err := keyload.OpenStore(store, keyload.Options{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func queue(t *testing.T, db *keyload.DB, name string) *api.ResourcesConfigureResponse {
	t.Helper()
	r, err := db.ConfigureResource(context.Background(), &api.ResourcesConfigureRequest{Name: name, Kind: api.KindQueue})
	must(t, err)
	return r
}

func is(t *testing.T, err error, code fault.Code, reason string) {
	t.Helper()
	if !errors.Is(err, &fault.Error{Code: code, Reason: reason}) {
		t.Errorf("want %s (%s), got %v", code, reason, err)
	}
}

func TestTheDoorLeavesTheCallersRequestAsItWas(t *testing.T) {
	db, ctx := memory(t), context.Background()
	queue(t, db, "q")
	_, err := db.ConfigurePrincipal(ctx, api.Principal{ID: "a", PolicyEpoch: 1})
	must(t, err)

	key := &api.APIKeysCreateRequest{CommandID: api.NewCommandID(), PrincipalID: "a"}
	api.ApplyDefaults(key)
	var first, again api.APIKeysCreateResponse
	must(t, db.Do(ctx, api.APIKeysCreate.Operation, key, &first))
	must(t, db.Do(ctx, api.APIKeysCreate.Operation, key, &again))
	if first.KeyID != again.KeyID || first.APIKey == "" || again.APIKey != "" {
		t.Errorf("the retry answered key %q (%d bytes shown), the call %q", again.KeyID, len(again.APIKey), first.KeyID)
	}

	done := &api.QueuesCompleteRequest{CommandID: api.NewCommandID(), Lane: api.LaneRef{Queue: "q"}, Items: []api.CompleteItem{{Token: "AAAA", Action: api.ActionAck}}}
	api.ApplyDefaults(done)
	for range 2 {
		var r api.QueuesCompleteResponse
		must(t, db.Do(ctx, api.QueuesComplete.Operation, done, &r))
		if r.Results[0].Error == nil || done.Items[0].Token != "AAAA" {
			t.Errorf("result %+v, the caller's token is now %q", r.Results[0], done.Items[0].Token)
		}
	}

	remove := &api.ResourcesDeleteRequest{CommandID: api.NewCommandID(), Name: "q"}
	api.ApplyDefaults(remove)
	for range 2 {
		var r api.ResourcesDeleteResponse
		must(t, db.Do(ctx, api.ResourcesDelete.Operation, remove, &r))
	}
}

func TestADeletionWithoutPurgeNeverTakesWhatWasAnswered(t *testing.T) {
	db, ctx := memory(t), context.Background()
	for round := range 150 {
		queue(t, db, "q")
		var wg sync.WaitGroup
		var written error
		deleted := make([]error, 4)
		for i := range deleted {
			wg.Go(func() {
				req := &api.ResourcesDeleteRequest{Name: "q"}
				if i == 0 {
					req.ExpectedVersion = 77 // is refused
				}
				_, deleted[i] = db.DeleteResource(ctx, req)
			})
		}
		wg.Go(func() { _, written = db.Commit(ctx, api.PartitionRef{}, keyload.Enqueue("q", keyload.Message(round))) })
		wg.Wait()
		for i, err := range deleted {
			if written == nil && err == nil {
				t.Fatalf("round %d: the write was answered and deletion %d took the queue", round, i)
			}
		}
		if written == nil {
			_, err := db.DeleteResource(ctx, &api.ResourcesDeleteRequest{Name: "q", Purge: true})
			must(t, err)
		}
	}
}

func TestARefusedDeletionStopsNobody(t *testing.T) {
	db, ctx := memory(t), context.Background()
	queue(t, db, "q")
	_, err := db.Commit(ctx, api.PartitionRef{}, keyload.Enqueue("q", keyload.Message(1)))
	must(t, err)
	before, err := db.Status(ctx)
	must(t, err)
	for range 5 {
		_, err := db.DeleteResource(ctx, &api.ResourcesDeleteRequest{Name: "q"})
		is(t, err, fault.Conflict, "not_empty")
		_, err = db.DeleteResource(ctx, &api.ResourcesDeleteRequest{Name: "q", ExpectedVersion: 9})
		is(t, err, fault.RevisionConflict, "version")
	}
	after, err := db.Status(ctx)
	must(t, err)
	for i := range after.Shards {
		if after.Shards[i].Position != before.Shards[i].Position {
			t.Errorf("shard %d went from position %d to %d", i, before.Shards[i].Position, after.Shards[i].Position)
		}
	}
}

func TestWhatACallerDoesToAnAnswerChangesNothingStored(t *testing.T) {
	db, ctx := memory(t), context.Background()
	r := queue(t, db, "q")
	r.Resource.Queue.MaxAttempts = 10
	got, err := db.GetResource(ctx, &api.ResourcesGetRequest{Name: "q"})
	must(t, err)
	if got.Queue.MaxAttempts != 5 {
		t.Fatalf("the stored policy says %d attempts", got.Queue.MaxAttempts)
	}
	got.Queue.MaxAttempts = 11
	changed, err := db.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "q", Kind: api.KindQueue, ExpectedVersion: 1, Queue: got.Queue})
	must(t, err)
	got.Queue.MaxAttempts = 12
	if !changed.Changed {
		t.Error("an update was taken for no change")
	}
	if got, err = db.GetResource(ctx, &api.ResourcesGetRequest{Name: "q"}); err != nil || got.Queue.MaxAttempts != 11 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestClosingLetsCallsFinishAndRefusesLaterOnes(t *testing.T) {
	db, ctx := memory(t), context.Background()
	queue(t, db, "q")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				_, err := db.Commit(ctx, api.PartitionRef{}, keyload.Enqueue("q", keyload.Message(1)))
				if err != nil {
					is(t, err, fault.OwnershipLost, "store_closed")
					return
				}
				if _, err := db.QueueStatus(ctx, api.LaneRef{Queue: "q"}); err != nil {
					is(t, err, fault.OwnershipLost, "store_closed")
					return
				}
			}
		})
	}
	wg.Go(func() {
		_, err := db.Receive(ctx, &api.QueuesReceiveRequest{Lane: api.LaneRef{Partition: api.PartitionRef{Key: "idle"}, Queue: "q"}, WaitMillis: 20_000})
		is(t, err, fault.OwnershipLost, "store_closed")
	})
	for db.Engine().Stats().Commands < 50 {
		_, err := db.Commit(ctx, api.PartitionRef{}, keyload.Enqueue("q", keyload.Message(1)))
		must(t, err)
	}
	must(t, db.Close())
	wg.Wait()
	must(t, db.Close())
	_, err := db.Engine().Authenticate(ctx, "kl_0_0")
	is(t, err, fault.OwnershipLost, "store_closed")
}

func TestARevocationHoldsThoughItsCallerLeft(t *testing.T) {
	db := memory(t)
	_, err := db.ConfigurePrincipal(context.Background(), api.Principal{ID: "a", PolicyEpoch: 1})
	must(t, err)
	for range 50 {
		key, err := db.CreateAPIKey(context.Background(), &api.APIKeysCreateRequest{PrincipalID: "a"})
		must(t, err)
		_, err = db.Engine().Authenticate(context.Background(), key.APIKey)
		must(t, err)
		ctx, leave := context.WithCancel(context.Background())
		go leave()
		revoke := &api.APIKeysRevokeRequest{CommandID: api.NewCommandID(), KeyID: key.KeyID}
		if _, err := db.RevokeAPIKey(ctx, revoke); err != nil {
			is(t, err, fault.Cancelled, "")
			continue // it was never submitted
		}
		_, err = db.Engine().Authenticate(context.Background(), key.APIKey)
		is(t, err, fault.Unauthenticated, "bad_api_key")
	}
}

func TestAReadThatAsksForAPointSeesItOrIsRefused(t *testing.T) {
	db, ctx := memory(t), context.Background()
	queue(t, db, "q")
	p := keyload.Partition("default", "main", "main", "main")
	r, err := db.Commit(ctx, p, keyload.Enqueue("q", keyload.Message(1)))
	must(t, err)
	ask := func(edit func(*api.CommitToken)) error {
		token := r.Receipt.Token
		edit(&token)
		_, err := api.Call(ctx, db, api.QueuesStatus, &api.QueuesStatusRequest{Lane: keyload.Lane(p, "q"), MinToken: &token})
		return err
	}
	must(t, ask(func(*api.CommitToken) {}))
	is(t, ask(func(c *api.CommitToken) { c.Position++ }), fault.TokenInvalidated, "future_position")
	is(t, ask(func(c *api.CommitToken) { c.Incarnation = "5f1c0a3e-0000-4000-8000-000000000001" }), fault.TokenInvalidated, "other_incarnation")
	is(t, ask(func(c *api.CommitToken) { c.Partition.Key = "other" }), fault.Validation, "")
}

func TestWhoMayChangeASchemaCannotLiftTheProtectionOfFields(t *testing.T) {
	db, ctx := memory(t), context.Background()
	protected := &api.ResourcesConfigureRequest{Name: "people", Kind: api.KindCollection, FieldPolicies: []api.FieldPolicy{{Path: "/ssn"}}}
	_, err := db.ConfigureResource(ctx, protected)
	must(t, err)
	for id, role := range map[string]api.Role{"op": api.RoleOperator, "boss": api.RoleAdmin} {
		_, err = db.ConfigurePrincipal(ctx, api.Principal{ID: id, PolicyEpoch: 1, Roles: []api.Role{role}})
		must(t, err)
	}
	op := db.As("default", "op")
	_, err = op.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "people", Kind: api.KindCollection, ExpectedVersion: 1})
	is(t, err, fault.PermissionDenied, "missing_capability")
	_, err = op.ConfigureResource(ctx, &api.ResourcesConfigureRequest{Name: "other", Kind: api.KindCollection})
	must(t, err)

	_, err = db.ConfigurePrincipal(ctx, api.Principal{ID: "root1", PolicyEpoch: 1, Administrator: true})
	must(t, err)
	key, err := db.CreateAPIKey(ctx, &api.APIKeysCreateRequest{PrincipalID: "root1"})
	must(t, err)
	_, err = db.As("default", "boss").RevokeAPIKey(ctx, &api.APIKeysRevokeRequest{KeyID: key.KeyID})
	is(t, err, fault.PermissionDenied, "administrator_only")
}
