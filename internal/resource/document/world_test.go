package document

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// world is one shard with collections in one partition.
type world struct {
	t        tester
	store    *kv.Store
	tx       *kv.Tx
	registry *op.Registry
	space    table.Space
	ref      api.PartitionRef
	now      int64
	defs     map[string]*api.Resource
	sealer   *token.Sealer
	position uint64
}

var root = &api.Principal{ID: "root", Administrator: true}

func newWorld(t tester) *world {
	s, err := kv.Open("", kv.Options{FS: vfs.NewMem(), NoSync: true, CacheBytes: 8 << 20})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	reg, err := op.NewRegistry([]op.Resource{Resource()})
	if err != nil {
		t.Fatalf("registry: %v", err)
	}
	ref := api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
	return &world{
		t: t, store: s, tx: s.NewTx(), registry: reg, ref: ref, now: 1_700_000_000_000, defs: map[string]*api.Resource{},
		space:  table.Space{Shard: 3, Partition: partitions.Hash(ref)},
		sealer: token.NewSealer([16]byte{1}, token.Keys{make([]byte, 32)}),
	}
}

func (w *world) close() {
	if err := errors.Join(w.tx.Close(), w.store.Close()); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// inWorld runs a test in a new world and checks its rows at the end.
func inWorld(t *testing.T, fn func(w *world)) {
	t.Helper()
	w := newWorld(t)
	defer w.close()
	fn(w)
	w.check()
}

func (w *world) scope(p *api.Principal) op.Scope {
	return op.Scope{Now: w.now, Space: w.space, Partition: w.ref, Principal: p, Registry: w.registry, Incarnation: [16]byte{1}}
}

// do runs fn as one command and keeps its writes unless it fails.
func (w *world) do(p *api.Principal, fn func(c *op.Ctx) error) error {
	w.position++
	w.tx.Begin()
	c := op.NewCtx(w.scope(p), w.tx, [16]byte{2}, w.position, 1, 7)
	err := fn(c)
	if err != nil {
		w.tx.Drop()
	}
	pending, commitErr := w.tx.Commit()
	if commitErr == nil {
		commitErr = pending.Wait()
	}
	if commitErr != nil {
		w.t.Fatalf("commit: %v", commitErr)
	}
	return err
}

// define makes or changes a collection.
func (w *world) define(name string, policy api.CollectionPolicy, protected ...string) {
	w.t.Helper()
	def := w.defs[name]
	if def == nil {
		def = &api.Resource{Tenant: "default", Database: "main", Domain: "main", Name: name, Kind: api.KindCollection, ID: uint32(len(w.defs) + 1)}
		w.defs[name] = def
	}
	if policy.TombstoneRetentionSeconds == 0 {
		policy.TombstoneRetentionSeconds = 100
	}
	def.Collection, def.FieldPolicies = &policy, nil
	def.Version++
	for _, path := range protected {
		def.FieldPolicies = append(def.FieldPolicies, api.FieldPolicy{Path: path})
	}
	if err := CheckPolicy(&policy); err != nil {
		w.t.Fatalf("define %s: %v", name, err)
	}
	if err := w.do(root, func(c *op.Ctx) error { return directory.Install(c, table.EncodeCBOR(nil, def)) }); err != nil {
		w.t.Fatalf("define %s: %v", name, err)
	}
}

// commit applies a batch as the door and the machine would.
func (w *world) commit(p *api.Principal, mutations ...api.Mutation) ([]uint64, error) {
	req := &api.CommandsCommitRequest{CommandID: "0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e", Partition: w.ref, Mutations: mutations}
	if found := api.Validate(req); len(found) > 0 {
		return nil, api.ValidationError(found)
	}
	var revisions []uint64
	err := w.do(p, func(c *op.Ctx) error {
		for i := range mutations {
			r, err := c.Mutate(i, &mutations[i])
			if err != nil {
				return err
			}
			revisions = append(revisions, r.Revision)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return revisions, nil
}

func put(id, doc string, expected ...uint64) api.Mutation {
	m := &api.PutDocument{Collection: "people", ID: id, Document: api.JSON(doc)}
	if len(expected) > 0 {
		m.ExpectedRevision = &expected[0]
	}
	return api.Mutation{PutDocument: m}
}

func remove(id string, expected ...uint64) api.Mutation {
	m := &api.DeleteDocument{Collection: "people", ID: id}
	if len(expected) > 0 {
		m.ExpectedRevision = &expected[0]
	}
	return api.Mutation{DeleteDocument: m}
}

func patch(id string, patches ...api.Patch) api.Mutation {
	return api.Mutation{PatchDocument: &api.PatchDocument{Collection: "people", ID: id, Patches: patches}}
}

func set(path, value string) api.Patch {
	return api.Patch{Op: api.PatchSet, Path: path, Value: api.JSON(value)}
}

func unset(path string) api.Patch { return api.Patch{Op: api.PatchRemove, Path: path} }

func add(path, value string) api.Patch {
	return api.Patch{Op: api.PatchIncrement, Path: path, Value: api.JSON(value)}
}

// must commits as root and wants success.
func (w *world) must(mutations ...api.Mutation) []uint64 {
	w.t.Helper()
	revisions, err := w.commit(root, mutations...)
	if err != nil {
		w.t.Fatalf("commit: %v", err)
	}
	return revisions
}

// refused commits and wants one refusal.
func (w *world) refused(p *api.Principal, code fault.Code, reason string, mutations ...api.Mutation) {
	w.t.Helper()
	_, err := w.commit(p, mutations...)
	if !errors.Is(err, fault.New(code, reason, "")) {
		w.t.Errorf("%v; want %s (%s)", err, code, reason)
	}
}

// view runs fn on a snapshot.
func (w *world) view(p *api.Principal, fn func(v *op.View)) kv.Work {
	snap := w.store.NewSnapshot()
	defer snap.Close()
	s := w.scope(p)
	s.R = snap
	fn(&op.View{Scope: s, Door: op.Door{Tokens: w.sealer, Now: w.now}})
	return snap.Work()
}

func (w *world) get(p *api.Principal, id string) (d api.Document, err error) {
	w.view(p, func(v *op.View) {
		resp, e := get(v, &api.DocumentsGetRequest{Partition: w.ref, Collection: "people", ID: id})
		if err = e; e == nil {
			d = resp.Document
		}
	})
	return d, err
}

// stored wants a document's text and revision.
func (w *world) stored(id, doc string, revision uint64) {
	w.t.Helper()
	d, err := w.get(root, id)
	if err != nil || string(d.Document) != doc || d.Revision != revision {
		w.t.Errorf("document %s is %.300s at revision %d, %v; want %.300s at %d", id, d.Document, d.Revision, err, doc, revision)
	}
}

// ask runs a query with the defaults of the API.
func (w *world) ask(p *api.Principal, req api.DocumentsQueryRequest) (resp *api.DocumentsQueryResponse, err error) {
	req.Partition = w.ref
	req.Collection = cmp.Or(req.Collection, "people")
	req.Limit = cmp.Or(req.Limit, 100)
	req.MaxBytes = cmp.Or(req.MaxBytes, 1<<20)
	for i := range req.Where {
		req.Where[i].Op = cmp.Or(req.Where[i].Op, api.OpEqual)
	}
	if found := api.Validate(&req); len(found) > 0 {
		return nil, api.ValidationError(found)
	}
	w.view(p, func(v *op.View) { resp, err = query(v, &req) })
	return resp, err
}

// ids wants a query to find documents in order, by the index named.
func (w *world) ids(req api.DocumentsQueryRequest, index string, want ...string) {
	w.t.Helper()
	resp, err := w.ask(root, req)
	if err != nil {
		w.t.Errorf("query: %v", err)
		return
	}
	got := idsOf(resp.Documents)
	if !slices.Equal(got, want) || resp.Index != index {
		w.t.Errorf("found %q by index %q; want %q by %q", got, resp.Index, want, index)
	}
}

func idsOf(docs []api.Document) []string {
	var out []string
	for _, d := range docs {
		out = append(out, d.ID)
	}
	return out
}

// tick handles what is due, as the machine does.
func (w *world) tick(budget int) (owners int) {
	err := w.do(root, func(c *op.Ctx) error {
		var due []table.DueKey
		err := table.DueRows.Scan(w.tx, table.Range{Prefix: codec.AppendUint16(nil, w.space.Shard)}, func(k table.DueKey, _ *table.None) (bool, error) {
			due = append(due, k)
			return k.When <= w.now, nil
		})
		for _, k := range due {
			if err != nil || k.When > w.now {
				break
			}
			owners++
			table.DueRows.Delete(w.tx, k)
			d, _ := w.registry.Due(k.Kind)
			err = d.Apply(c, []byte(k.Owner), budget)
		}
		return err
	})
	if err != nil {
		w.t.Fatalf("tick: %v", err)
	}
	return owners
}

// audit checks every row of the shard.
func (w *world) audit() (*op.Audit, string) {
	snap := w.store.NewSnapshot()
	defer snap.Close()
	s := w.scope(root)
	s.R = snap
	a := op.NewAudit(s, append([]op.Resource{directory.Resource(nil)}, w.registry.Resources()...))
	a.Partitions = map[[16]byte]bool{w.space.Partition: true}
	if err := a.Run(); err != nil {
		w.t.Fatalf("check: %v", err)
	}
	text := ""
	for _, f := range a.Findings {
		text += fmt.Sprintf("%s: %s: %s\n", f.Invariant, f.Where, f.Text)
	}
	return a, text
}

func (w *world) check() *op.Audit {
	w.t.Helper()
	a, text := w.audit()
	if text != "" {
		w.t.Fatalf("the check finds:\n%s", text)
	}
	return a
}
