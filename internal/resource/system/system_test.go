package system

import (
	"errors"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

func openTx(t *testing.T) (*kv.Store, *kv.Tx) {
	t.Helper()
	s, err := kv.Open("db", kv.Options{FS: vfs.NewMem(), NoSync: true, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	tx := s.NewTx()
	tx.Begin()
	t.Cleanup(func() {
		if err := errors.Join(tx.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, tx
}

func ctx(tx *kv.Tx) *op.Ctx {
	return op.NewCtx(op.Scope{Space: table.Space{Shard: 3}, Now: 1000, Registry: new(op.Registry)}, tx, [16]byte{1}, 1, 1, 1)
}

func TestTheIdentityOfAStoreIsReadBack(t *testing.T) {
	_, tx := openTx(t)
	if _, ok, err := ReadIdentity(tx); ok || err != nil {
		t.Fatalf("a new store has an identity (%v)", err)
	}
	want := Identity{Format: Format, Incarnation: [16]byte{7}, Shards: 8, TokenKeys: [][]byte{{1}, {2, 3}}, CreatedAt: 5}
	WriteIdentity(tx, want)
	p, err := tx.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := ReadIdentity(tx); !ok || err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("it came back as %+v, %v, %v", got, ok, err)
	}
}

func resource(revision uint64, version uint64) changes.Change {
	return changes.Change{Revision: revision, Kind: changes.Resource, Record: table.EncodeCBOR(nil, &api.Resource{
		Tenant: "default", Database: "main", Name: "work", Domain: "main", Kind: api.KindQueue, ID: 1, Version: version,
	})}
}

func TestAShardInstallsWhatItLacksAndPassesOverTheRest(t *testing.T) {
	_, tx := openTx(t)
	policy := changes.Change{Revision: 2, Kind: changes.Principal, Record: table.EncodeCBOR(nil, &api.Principal{ID: "p", Tenant: "default", PolicyEpoch: 4})}
	for i, step := range []struct {
		changes  []changes.Change
		revision uint64
		version  uint64
	}{
		{[]changes.Change{resource(1, 1), policy}, 2, 1},
		{[]changes.Change{resource(1, 9), policy}, 2, 1}, // has them
		{[]changes.Change{resource(4, 9)}, 2, 1},         // lacks the one before
		{[]changes.Change{policy, resource(3, 2)}, 3, 2},
		{nil, 3, 2},
	} {
		resp, err := install(ctx(tx), &InstallRequest{Changes: step.changes})
		if err != nil || resp.Revision != step.revision {
			t.Fatalf("step %d: revision %d, want %d (%v)", i, resp.Revision, step.revision, err)
		}
		r, err := directory.Lookup(tx, 3, "default", "main", "work")
		if err != nil || r == nil || r.Version != step.version {
			t.Errorf("step %d: the resource is %+v (%v)", i, r, err)
		}
	}
	if p, err := access.Find(tx, 3, "default", "p"); err != nil || p == nil || p.PolicyEpoch != 4 {
		t.Errorf("the policy is %+v (%v)", p, err)
	}
}

func TestAChangeThisProgramDoesNotKnowOrCannotReadStopsTheShard(t *testing.T) {
	_, tx := openTx(t)
	for _, bad := range []changes.Change{
		{Revision: 1, Kind: 99}, {Revision: 1, Kind: changes.Resource, Record: []byte{0xFF}},
		{Revision: 1, Kind: changes.Principal, Record: []byte{0xFF}}, {Revision: 1, Kind: changes.Forgotten, Record: []byte{0xFF}},
	} {
		tx.Begin()
		if _, err := install(ctx(tx), &InstallRequest{Changes: []changes.Change{bad}}); err == nil {
			t.Errorf("a change of kind %d was passed over", bad.Kind)
		}
		tx.Drop()
	}
}
