package engine

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/table"
)

// keyed is a store of one data shard and the caller of an API key.
type keyed struct {
	*Engine
	t     *testing.T
	keyID string
	who   *Caller
}

func newKeyed(t *testing.T) *keyed {
	t.Helper()
	store, err := kv.Open("store", kv.Options{FS: vfs.NewMem(), NoSync: true})
	must(t, err)
	e, err := Open(Config{Store: store, Shards: 1, Durability: api.DurableProcess})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()); must(t, store.Close()) })
	k := &keyed{Engine: e, t: t}
	k.do(api.PrincipalsConfigure.Operation, &api.PrincipalsConfigureRequest{
		CommandID: uuid.NewString(), Principal: api.Principal{ID: "p", PolicyEpoch: 1},
	})
	made := k.do(api.APIKeysCreate.Operation, &api.APIKeysCreateRequest{CommandID: uuid.NewString(), PrincipalID: "p"}).(*api.APIKeysCreateResponse)
	k.keyID = made.KeyID
	k.who, err = e.Authenticate(t.Context(), made.APIKey)
	must(t, err)
	return k
}

func (k *keyed) do(o *api.Operation, req any) any {
	k.t.Helper()
	api.ApplyDefaults(req)
	got, err := k.Do(k.t.Context(), k.Root(), o, req)
	must(k.t, err)
	return got
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAWriteIsNotDecidedByACatalogOlderThanTheShard(t *testing.T) {
	k := newKeyed(t)
	decides := func(want bool) {
		t.Helper()
		p, known, err := k.policyAt(t.Context(), k.who, 1)
		if must(t, err); known != want || want && p.ID != "p" {
			t.Errorf("policy %v, decided %v, want %v", p, known, want)
		}
	}
	decides(true)
	decides(true) // as it is remembered

	// The shard is given a change that the catalog of this node does not have yet.
	tx := k.store.NewTx()
	newest, err := changes.Revision(tx, 1)
	must(t, err)
	tx.Begin()
	installed, err := changes.Installed(op.NewCtx(op.Scope{Space: table.Space{Shard: 1}}, tx, [16]byte{1}, 1, 1, 1), newest+1)
	if must(t, err); !installed {
		t.Fatal("nothing was installed")
	}
	pending, err := tx.Commit()
	must(t, err)
	must(t, pending.Wait())
	must(t, tx.Close())
	decides(false)
}

func TestARevokedKeyMovesTheCatalogToANewRevision(t *testing.T) {
	k := newKeyed(t)
	before, err := revisionOf(k.store, 1)
	must(t, err)
	k.do(api.APIKeysRevoke.Operation, &api.APIKeysRevokeRequest{CommandID: uuid.NewString(), KeyID: k.keyID})
	after, err := revisionOf(k.store, 1)
	if must(t, err); after != before+1 {
		t.Errorf("the shard is at revision %d, and was at %d", after, before)
	}
	if _, _, err := k.policyAt(t.Context(), k.who, 1); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("a revoked key: %v", err)
	}
}
