package access_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// node is an open store with a clock that is moved by hand.
type node struct {
	t     *testing.T
	fs    *vfs.MemFS
	store *kv.Store
	e     *engine.Engine
	now   time.Time
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, fs: vfs.NewMem(), now: time.Now().Truncate(time.Millisecond)}
	n.open()
	t.Cleanup(n.close)
	return n
}

func (n *node) open() {
	n.t.Helper()
	var err error
	n.store, err = kv.Open("db", kv.Options{FS: n.fs, CacheBytes: 1 << 20})
	n.must(err)
	n.e, err = engine.Open(engine.Config{Store: n.store, Shards: 2, Now: func() time.Time { return n.now }})
	n.must(err)
}

func (n *node) close() { n.t.Helper(); n.must(errors.Join(n.e.Close(), n.store.Close())) }
func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// call carries out an operation as a client would.
func call[Req, Resp any](n *node, who *engine.Caller, o api.Op[Req, Resp], req Req) (*Resp, error) {
	n.t.Helper()
	api.ApplyDefaults(&req)
	if c, ok := any(&req).(api.CommandRequest); ok && c.GetCommandID() == "" {
		c.SetCommandID(api.NewCommandID())
	}
	resp, err := n.e.Do(context.Background(), who, o.Operation, &req)
	if err != nil {
		return nil, err
	}
	return resp.(*Resp), nil
}

func (n *node) configure(who *engine.Caller, p api.Principal) (*api.PrincipalsConfigureResponse, error) {
	n.t.Helper()
	return call(n, who, api.PrincipalsConfigure, api.PrincipalsConfigureRequest{Principal: p})
}

func (n *node) is(err error, code fault.Code, reason string) {
	n.t.Helper()
	if f := fault.From(err); f == nil || f.Code != code || reason != "" && f.Reason != reason {
		n.t.Errorf("want %s (%s), got %v", code, reason, err)
	}
}

func TestAKeyOpensTheStoreForItsPrincipalUntilItIsRevoked(t *testing.T) {
	n := newNode(t)
	root := n.e.Root()
	_, err := n.configure(root, api.Principal{ID: "p", Roles: []api.Role{api.RoleReader}, PolicyEpoch: 1})
	n.must(err)
	made, err := call(n, root, api.APIKeysCreate, api.APIKeysCreateRequest{PrincipalID: "p"})
	n.must(err)
	if !strings.HasPrefix(made.APIKey, "kl_"+made.KeyID+"_") {
		t.Fatalf("the key has the form %.4s…", made.APIKey)
	}
	for range 2 { // the second time from memory
		who, err := n.e.Authenticate(context.Background(), made.APIKey)
		n.must(err)
		if who.Tenant() != "default" || who.Principal() != "p" {
			t.Errorf("the key is of %s/%s", who.Tenant(), who.Principal())
		}
	}
	id, secret := "kl_"+made.KeyID, strings.TrimPrefix(made.APIKey, "kl_"+made.KeyID+"_")
	for _, wrong := range []string{
		"", "kl_", id, id + "_", id + "_" + secret[1:], id + "_" + secret + "A", id + "_" + strings.Repeat("A", len(secret)),
		"KL_" + made.KeyID + "_" + secret, "kl_0000000000000000_" + secret, made.APIKey + " ", secret,
	} {
		_, err := n.e.Authenticate(context.Background(), wrong)
		n.is(err, fault.Unauthenticated, "bad_api_key")
		if strings.Contains(err.Error(), secret) {
			t.Error("the refusal repeats the secret")
		}
	}
	revoked, err := call(n, root, api.APIKeysRevoke, api.APIKeysRevokeRequest{KeyID: made.KeyID})
	n.must(err)
	again, err := call(n, root, api.APIKeysRevoke, api.APIKeysRevokeRequest{KeyID: made.KeyID})
	n.must(err)
	if !revoked.Changed || again.Changed {
		t.Errorf("revoking changed %v, then %v", revoked.Changed, again.Changed)
	}
	_, err = n.e.Authenticate(context.Background(), made.APIKey)
	n.is(err, fault.Unauthenticated, "bad_api_key")
	_, err = call(n, root, api.APIKeysRevoke, api.APIKeysRevokeRequest{KeyID: "0000000000000000"})
	n.is(err, fault.NotFound, "unknown_api_key")
}

func TestAKeyEndsAtItsMillisecond(t *testing.T) {
	n := newNode(t)
	_, err := n.configure(n.e.Root(), api.Principal{ID: "p", PolicyEpoch: 1})
	n.must(err)
	_, err = call(n, n.e.Root(), api.APIKeysCreate, api.APIKeysCreateRequest{PrincipalID: "p", ExpiresAt: api.TimeOf(n.now)})
	n.is(err, fault.Validation, "invalid_field")
	made, err := call(n, n.e.Root(), api.APIKeysCreate, api.APIKeysCreateRequest{PrincipalID: "p", ExpiresAt: api.TimeOf(n.now.Add(time.Second))})
	n.must(err)
	n.now = n.now.Add(999 * time.Millisecond)
	_, err = n.e.Authenticate(context.Background(), made.APIKey)
	n.must(err)
	n.now = n.now.Add(time.Millisecond)
	_, err = n.e.Authenticate(context.Background(), made.APIKey)
	n.is(err, fault.Unauthenticated, "bad_api_key")
}

func TestAKeyNeedsAPrincipalThatMayHaveOne(t *testing.T) {
	n := newNode(t)
	root := n.e.Root()
	for _, p := range []api.Principal{
		{ID: "revoked", Revoked: true, PolicyEpoch: 1}, {ID: "boss", Administrator: true, PolicyEpoch: 1},
		{ID: "security", Roles: []api.Role{api.RoleAdmin}, PolicyEpoch: 1},
	} {
		_, err := n.configure(root, p)
		n.must(err)
	}
	security := n.e.As("default", "security")
	for _, c := range []struct {
		who    *engine.Caller
		id     string
		code   fault.Code
		reason string
	}{
		{root, "nobody", fault.NotFound, "unknown_principal"}, {root, "revoked", fault.Conflict, "principal_revoked"},
		{security, "boss", fault.PermissionDenied, "administrator_only"}, {n.e.As("default", "boss"), "boss", "", ""}, {security, "security", "", ""},
	} {
		_, err := call(n, c.who, api.APIKeysCreate, api.APIKeysCreateRequest{PrincipalID: c.id})
		if c.code == "" {
			n.must(err)
			continue
		}
		n.is(err, c.code, c.reason)
	}
}

// A retry of the call that made a key is answered from its receipt: without the
// secret, which nobody has any more.
func TestAKeyIsShownOnceAndItsSecretIsNowhereInTheStore(t *testing.T) {
	n := newNode(t)
	_, err := n.configure(n.e.Root(), api.Principal{ID: "p", PolicyEpoch: 1})
	n.must(err)
	req := api.APIKeysCreateRequest{CommandID: api.NewCommandID(), PrincipalID: "p"}
	first, err := call(n, n.e.Root(), api.APIKeysCreate, req)
	n.must(err)
	again, err := call(n, n.e.Root(), api.APIKeysCreate, req)
	n.must(err)
	if first.APIKey == "" || again.APIKey != "" || again.KeyID != first.KeyID {
		t.Errorf("the retry answers key id %s, the call %s; shown again: %v", again.KeyID, first.KeyID, again.APIKey != "")
	}
	secret := strings.TrimPrefix(first.APIKey, "kl_"+first.KeyID+"_")
	n.e.Authenticate(context.Background(), first.APIKey)
	snap := n.store.NewSnapshot()
	rows := 0
	n.must(snap.Scan(nil, nil, false, func(k, v []byte) (bool, error) {
		rows++
		if bytes.Contains(k, []byte(secret)) || bytes.Contains(v, []byte(secret)) {
			t.Errorf("the row %x holds the secret", k)
		}
		return true, nil
	}))
	n.must(snap.Close())
	if rows == 0 {
		t.Fatal("nothing was looked at")
	}
	n.must(n.store.Flush())
	names, err := n.fs.List("db")
	n.must(err)
	for _, name := range names {
		data, err := n.fs.UnsafeGetFileDataBuffer("db/" + name)
		n.must(err)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("the file %s holds the secret", name)
		}
	}
	keys, err := call(n, n.e.Root(), api.APIKeysList, api.APIKeysListRequest{})
	n.must(err)
	if len(keys.Keys) != 1 || keys.Keys[0].KeyID != first.KeyID || strings.Contains(fmt.Sprintf("%+v", keys), secret) {
		t.Errorf("the list shows %+v", keys.Keys)
	}
}

func TestAPolicyIsReplacedByAGreaterEpochOnly(t *testing.T) {
	n := newNode(t)
	root := n.e.Root()
	p := api.Principal{ID: "p", Roles: []api.Role{api.RoleReader}, PolicyEpoch: 5}
	for _, c := range []struct {
		role             api.Role
		epoch            uint64
		created, changed bool
		reason           string
	}{
		{api.RoleReader, 5, true, true, ""}, {api.RoleReader, 5, false, false, ""}, {api.RoleWorker, 5, false, false, "policy_epoch"},
		{api.RoleWorker, 4, false, false, "policy_epoch"}, {api.RoleWorker, 6, false, true, ""}, {api.RoleReader, 5, false, false, "policy_epoch"},
	} {
		p.Roles, p.PolicyEpoch = []api.Role{c.role}, c.epoch
		resp, err := n.configure(root, p)
		if c.reason != "" {
			n.is(err, fault.RevisionConflict, c.reason)
			continue
		}
		n.must(err)
		if resp.Created != c.created || resp.Changed != c.changed {
			t.Errorf("%s at %d: created %v, changed %v", c.role, c.epoch, resp.Created, resp.Changed)
		}
	}
	got, err := call(n, root, api.PrincipalsGet, api.PrincipalsGetRequest{ID: "p"})
	n.must(err)
	if got.Principal.PolicyEpoch != 6 || got.Principal.Roles[0] != api.RoleWorker {
		t.Errorf("the policy is %+v", got.Principal)
	}
	_, err = call(n, root, api.PrincipalsGet, api.PrincipalsGetRequest{ID: "q"})
	n.is(err, fault.NotFound, "unknown_principal")
}

func TestOnlyAnAdministratorMakesOrChangesOne(t *testing.T) {
	n := newNode(t)
	root := n.e.Root()
	for _, p := range []api.Principal{{ID: "boss", Administrator: true, PolicyEpoch: 1}, {ID: "security", Roles: []api.Role{api.RoleAdmin}, PolicyEpoch: 1}} {
		_, err := n.configure(root, p)
		n.must(err)
	}
	security := n.e.As("default", "security")
	_, err := n.configure(security, api.Principal{ID: "me", Administrator: true, PolicyEpoch: 1})
	n.is(err, fault.PermissionDenied, "administrator_only")
	_, err = n.configure(security, api.Principal{ID: "boss", PolicyEpoch: 2})
	n.is(err, fault.PermissionDenied, "administrator_only")
	_, err = n.configure(security, api.Principal{ID: "p", Tenant: "other", PolicyEpoch: 1})
	n.is(err, fault.PermissionDenied, "missing_capability")
	_, err = n.configure(security, api.Principal{ID: "p", PolicyEpoch: 1})
	n.must(err)
	_, err = n.configure(n.e.As("default", "boss"), api.Principal{ID: "boss", PolicyEpoch: 2})
	n.must(err)
	_, err = n.configure(n.e.As("default", "boss"), api.Principal{ID: "boss", Administrator: true, PolicyEpoch: 3})
	n.is(err, fault.PermissionDenied, "missing_capability") // it gave its rights away
}

// A revocation holds when the call that made it returns, in every shard.
func TestARevocationHoldsAtOnceAndAfterARestart(t *testing.T) {
	n := newNode(t)
	root := n.e.Root()
	_, err := call(n, root, api.ResourcesConfigure, api.ResourcesConfigureRequest{Name: "docs", Kind: api.KindCollection})
	n.must(err)
	p := api.Principal{ID: "p", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1}
	_, err = n.configure(root, p)
	n.must(err)
	write := func(key string) error {
		place := api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: key}
		_, err := call(n, n.e.As("default", "p"), api.CommandsCommit, api.CommandsCommitRequest{Partition: place, Mutations: []api.Mutation{
			{PutDocument: &api.PutDocument{Collection: "docs", ID: "a", Document: api.JSON("{}")}},
		}})
		return err
	}
	for i := range 6 { // some partition of each shard
		n.must(write(fmt.Sprint(i)))
	}
	p.Revoked, p.PolicyEpoch = true, 2
	_, err = n.configure(root, p)
	n.must(err)
	for range 2 {
		for i := range 6 {
			n.is(write(fmt.Sprint(i)), fault.PermissionDenied, "principal_revoked")
		}
		n.close()
		n.open()
	}
	n.check()
}

// check runs every package's check over every shard.
func (n *node) check() {
	n.t.Helper()
	snap := n.store.NewSnapshot()
	defer snap.Close()
	for shard := range n.e.Shards() + 1 {
		a := op.NewAudit(op.Scope{R: snap, Now: n.now.UnixMilli(), Space: table.Space{Shard: shard}, Registry: n.e.Registry()}, n.e.Registry().Resources())
		a.Shards = n.e.Shards()
		n.must(a.Run())
		if len(a.Findings) > 0 {
			n.t.Errorf("shard %d: %+v", shard, a.Findings)
		}
	}
}

func TestListsGoPageByPageThroughTheirOwnTenantOnly(t *testing.T) {
	n := newNode(t)
	root := n.e.Root()
	const many = 25
	for i := range many {
		_, err := n.configure(root, api.Principal{ID: fmt.Sprintf("p%02d", i), PolicyEpoch: 1})
		n.must(err)
		_, err = call(n, root, api.APIKeysCreate, api.APIKeysCreateRequest{PrincipalID: fmt.Sprintf("p%02d", i%2)})
		n.must(err)
	}
	_, err := n.configure(root, api.Principal{ID: "stranger", Tenant: "default2", PolicyEpoch: 1})
	n.must(err)
	names, cursor := []string{}, ""
	for pages := 1; ; pages++ {
		resp, err := call(n, root, api.PrincipalsList, api.PrincipalsListRequest{Limit: 10, Cursor: cursor})
		n.must(err)
		for _, p := range resp.Principals {
			names = append(names, p.ID)
		}
		if cursor = resp.Cursor; cursor == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		_, err = call(n, root, api.PrincipalsList, api.PrincipalsListRequest{Tenant: "default2", Cursor: cursor})
		n.is(err, fault.Validation, "bad_cursor")
		_, err = call(n, root, api.APIKeysList, api.APIKeysListRequest{Cursor: cursor})
		n.is(err, fault.Validation, "bad_cursor")
	}
	if len(names) != many || names[0] != "p00" || names[many-1] != "p24" {
		t.Errorf("listed were %v", names)
	}
	seen, cursor := 0, ""
	for {
		resp, err := call(n, root, api.APIKeysList, api.APIKeysListRequest{PrincipalID: "p01", Limit: 5, Cursor: cursor})
		n.must(err)
		for _, k := range resp.Keys {
			if seen++; k.PrincipalID != "p01" {
				t.Errorf("a key of %s", k.PrincipalID)
			}
		}
		if cursor = resp.Cursor; cursor == "" {
			break
		}
	}
	if seen != many/2 {
		t.Errorf("%d keys of p01, want %d", seen, many/2)
	}
	resp, err := call(n, root, api.PrincipalsList, api.PrincipalsListRequest{Limit: 1})
	n.must(err)
	n.now = n.now.Add(24 * time.Hour)
	_, err = call(n, root, api.PrincipalsList, api.PrincipalsListRequest{Limit: 1, Cursor: resp.Cursor})
	n.is(err, fault.CursorExpired, "cursor_expired")
}
