package source

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
	"github.com/keyload/keyload/internal/wire"
)

// judge is what testing.TB and rapid.T have in common.
type judge interface {
	Helper()
	Fatalf(format string, args ...any)
}

// bed is a store with a topic "orders" and a stream set "accounts", and a clock
// that moves when told to.
type bed struct {
	named    map[[16]byte]bool // partitions that have a name
	t        judge
	registry *op.Registry
	fs       vfs.FS
	dir      string
	store    *kv.Store
	tx       *kv.Tx
	now      int64
	position uint64
	who      *api.Principal
	sealer   *token.Sealer
	topic    *api.Resource
	set      *api.Resource
}

var (
	bedSpace     = table.Space{Shard: 1, Partition: [16]byte{7, 7, 7}}
	bedPartition = api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: "main"}
)

func newBed(t judge, p api.SourcePolicy) *bed { return newBedIn(t, vfs.NewMem(), "db", p) }

func newBedIn(t judge, fs vfs.FS, dir string, p api.SourcePolicy) *bed {
	t.Helper()
	if p.MaxEvents == 0 {
		p.MaxEvents = 10_000_000
	}
	if p.MaxBytes == 0 {
		p.MaxBytes = 1 << 34
	}
	if p.EventIDRetentionSeconds == 0 {
		p.EventIDRetentionSeconds = 100
	}
	if p.OnFull == "" {
		p.OnFull = api.OnFullReject
	}
	registry, err := op.NewRegistry([]op.Resource{Resource(), markerResource()})
	if err != nil {
		t.Fatalf("registry: %v", err)
	}
	b := &bed{
		t: t, registry: registry, fs: fs, dir: dir, now: 1_700_000_000_000, named: map[[16]byte]bool{bedSpace.Partition: true},
		who:    &api.Principal{ID: "root", Tenant: "default", Administrator: true},
		sealer: token.NewSealer([16]byte{1}, token.Keys{bytes.Repeat([]byte{9}, 32)}),
	}
	b.open()
	b.topic = &api.Resource{Tenant: "default", Database: "main", Domain: "main", Name: "orders", Kind: api.KindTopic, Source: &p, ID: 3, Version: 1}
	b.set = &api.Resource{Tenant: "default", Database: "main", Domain: "main", Name: "accounts", Kind: api.KindStreamSet, Source: &p, ID: 4, Version: 1}
	b.install(b.topic)
	b.install(b.set)
	return b
}

func (b *bed) install(r *api.Resource) {
	b.t.Helper()
	record, err := wire.EncodeLog(r)
	if err != nil {
		b.t.Fatalf("encode: %v", err)
	}
	b.must(b.apply(func(c *op.Ctx) error { return directory.Install(c, record) }))
}

// change installs a resource with another policy.
func (b *bed) change(r *api.Resource, edit func(p *api.SourcePolicy)) {
	b.t.Helper()
	p := *r.Source
	edit(&p)
	r.Source = &p
	r.Version++
	b.install(r)
}

func (b *bed) open() {
	b.t.Helper()
	var err error
	if b.store, err = kv.Open(b.dir, kv.Options{FS: b.fs, NoSync: true}); err != nil {
		b.t.Fatalf("open: %v", err)
	}
	b.tx = b.store.NewTx()
}

func (b *bed) close() {
	b.t.Helper()
	b.must(b.tx.Close())
	b.must(b.store.Close())
}

// restart closes and opens the store: nothing that was only in memory is left.
func (b *bed) restart() {
	b.close()
	b.open()
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("failed: %v", err)
	}
}

func (b *bed) scope() op.Scope {
	return op.Scope{Now: b.now, Space: bedSpace, Partition: bedPartition, Principal: b.who, Incarnation: [16]byte{1}, Registry: b.registry}
}

// apply evaluates one command as an entry of its own; a refusal leaves nothing.
func (b *bed) apply(fn func(c *op.Ctx) error) error {
	b.t.Helper()
	b.position++
	b.tx.Begin()
	id := [16]byte{0xC0}
	binary.BigEndian.PutUint64(id[8:], b.position)
	err := fn(op.NewCtx(b.scope(), b.tx, id, b.position, 1, 42))
	if err != nil {
		b.tx.Drop()
	}
	b.commit()
	return err
}

func (b *bed) commit() {
	b.t.Helper()
	p, err := b.tx.Commit()
	b.must(err)
	b.must(p.Wait())
}

// view runs fn over a snapshot.
func (b *bed) view(fn func(v *op.View) error) error {
	snap := b.store.NewSnapshot()
	defer snap.Close()
	s := b.scope()
	s.R = snap
	return fn(&op.View{Scope: s, Door: op.Door{Tokens: b.sealer, Now: b.now}})
}

func (b *bed) orders() Key {
	return Key{Owner: table.Owner{Space: bedSpace, Resource: b.topic.ID}, Generation: 1}
}

func (b *bed) account(id string) Key {
	return Key{Owner: table.Owner{Space: bedSpace, Resource: b.set.ID}, StreamID: id, Generation: 1}
}

func (b *bed) publish(list ...api.Event) (a Appended, err error) {
	b.t.Helper()
	err = b.apply(func(c *op.Ctx) error {
		r, k, err := Topic(&c.Scope, "orders", 1)
		if err == nil {
			a, err = Append(c, r, k, 0, api.ExpectAny(), list)
		}
		return err
	})
	return a, err
}

func (b *bed) append(id string, expected api.ExpectedStream, list ...api.Event) (a Appended, err error) {
	b.t.Helper()
	err = b.apply(func(c *op.Ctx) error {
		r, k, err := Stream(&c.Scope, "accounts", id, 1)
		if err == nil {
			a, err = Append(c, r, k, 0, expected, list)
		}
		return err
	})
	return a, err
}

func (b *bed) purge(through uint64) (cut uint64, err error) {
	b.t.Helper()
	err = b.apply(func(c *op.Ctx) error {
		r, k, err := Topic(&c.Scope, "orders", 1)
		if err == nil {
			cut, err = Purge(c, r, k, through)
		}
		return err
	})
	return cut, err
}

// read reads a page of the topic; a limit or byte bound of 0 is a wide one.
func (b *bed) read(q Read) (p *Page, err error) {
	b.t.Helper()
	return b.readOf(b.topic, b.orders(), q)
}

func (b *bed) readOf(r *api.Resource, k Key, q Read) (p *Page, err error) {
	b.t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	if q.MaxBytes == 0 {
		q.MaxBytes = 8 << 20
	}
	err = b.view(func(v *op.View) error {
		p, err = ReadPage(v, r, k, q)
		return err
	})
	return p, err
}

func (b *bed) head(k Key) (h Head) {
	b.t.Helper()
	b.must(b.view(func(v *op.View) (err error) { h, err = Look(&v.Scope, k); return err }))
	return h
}

// tick hands every due row to its handler once and says how many there were.
func (b *bed) tick(budget int) (n int) {
	b.t.Helper()
	b.must(b.apply(func(c *op.Ctx) error {
		var due []table.DueKey
		err := table.DueRows.Scan(c.R, table.Range{}, func(k table.DueKey, _ *table.None) (bool, error) {
			if k.When <= c.Now {
				due = append(due, k)
			}
			return k.When <= c.Now, nil
		})
		for _, k := range due {
			table.DueRows.Delete(c.Tx, k)
			for _, d := range Resource().Dues {
				if d.Kind == k.Kind && err == nil {
					err = d.Apply(c, []byte(k.Owner), budget)
				}
			}
		}
		n = len(due)
		return err
	}))
	return n
}

// settle ticks until nothing is due any more.
func (b *bed) settle(budget int) {
	b.t.Helper()
	for range 100_000 {
		if b.tick(budget) == 0 {
			return
		}
	}
	b.t.Fatalf("due work does not end")
}

// check fails the test for every violated invariant, and returns the counts.
func (b *bed) check() map[string]int64 {
	b.t.Helper()
	findings, counts := b.audit()
	for _, f := range findings {
		b.t.Fatalf("%s: %s: %s", f.Invariant, f.Where, f.Text)
	}
	return counts
}

func (b *bed) audit() ([]op.Finding, map[string]int64) {
	b.t.Helper()
	var a *op.Audit
	b.must(b.view(func(v *op.View) error {
		s := v.Scope
		s.Space = table.Space{Shard: bedSpace.Shard}
		a = op.NewAudit(s, []op.Resource{Resource(), directory.Resource(nil)})
		a.Partitions = b.named
		return a.Run()
	}))
	return a.Findings, a.Counts
}

// rows is every row of the store, as text.
func (b *bed) rows() string {
	b.t.Helper()
	var out bytes.Buffer
	b.must(b.view(func(v *op.View) error {
		return v.R.Scan(nil, nil, false, func(key, value []byte) (bool, error) {
			fmt.Fprintf(&out, "%x %x\n", key, value)
			return true, nil
		})
	}))
	return out.String()
}

// count is how many rows of a table there are.
func (b *bed) count(id table.ID) (n int) {
	b.t.Helper()
	b.must(b.view(func(v *op.View) error {
		return v.R.Scan([]byte{byte(id)}, []byte{byte(id) + 1}, false, func(_, _ []byte) (bool, error) {
			n++
			return true, nil
		})
	}))
	return n
}

func event(id, payload string) api.Event {
	return api.Event{EventID: id, Type: "Placed", Payload: api.JSON(payload), SchemaVersion: 1}
}

// numbered is n events e<from>…, each with its number as payload.
func numbered(from, n int) []api.Event {
	out := make([]api.Event, n)
	for i := range out {
		out[i] = event(fmt.Sprintf("e%d", from+i), fmt.Sprint(from+i))
	}
	return out
}

func wantCode(t *testing.T, err error, code fault.Code, reason string) *fault.Error {
	t.Helper()
	f := fault.From(err)
	if f == nil || f.Code != code || f.Reason != reason {
		t.Fatalf("got %v, want %s (%s)", err, code, reason)
	}
	return f
}

func positions(list []api.StoredEvent) []uint64 {
	out := []uint64{}
	for _, e := range list {
		out = append(out, e.Position)
	}
	return out
}

// sizeOf is how many bytes an event takes as it is stored.
func (b *bed) sizeOf(k Key, position uint64) (n uint64, err error) {
	b.t.Helper()
	err = b.view(func(v *op.View) error {
		return scanRows(&v.Scope, k, position, position, false, func(_ uint64, key, value []byte) (bool, error) {
			n = uint64(len(key) + len(value))
			return true, nil
		})
	})
	return n, err
}
