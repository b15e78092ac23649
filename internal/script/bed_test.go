package script

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/catalog"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/members"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
	"github.com/keyload/keyload/internal/wire"
)

const (
	dataShard = 1                        // the one data shard; the catalog is shard 0
	start     = int64(1_800_000_000_000) // t+0s
)

var (
	incarnation = [16]byte{1, 2, 3}
	sealer      = token.NewSealer(incarnation, token.Keys{bytes.Repeat([]byte{7}, 32)})
)

// bed is a store in memory with its catalog and one data shard.
type bed struct {
	t        *testing.T
	fs       vfs.FS
	store    *kv.Store
	machines [2]*machine.Machine // by shard
	registry *op.Registry
	now      int64
	log      [][]byte // every entry, after one byte for its shard
	marked   map[string]string

	ids    map[string]uuid.UUID // by the script's name
	idText map[string]string    // back
	drawn  uint32
	given  map[string]string // token or cursor by its name
	names  map[string]string // back
	counts map[string]int    // names given, by prefix
}

func newBed(t *testing.T) *bed {
	b := &bed{
		t: t, fs: vfs.NewMem(), now: start,
		ids: map[string]uuid.UUID{}, idText: map[string]string{}, given: map[string]string{}, names: map[string]string{}, counts: map[string]int{},
	}
	var err error
	b.registry, err = op.NewRegistry(append(catalog.Resources(), machine.Resource(api.DurableDisk)))
	b.must(err)
	b.open()
	t.Cleanup(b.close)
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("failed: %v", err)
	}
}

func (b *bed) open() {
	var err error
	b.store, err = kv.Open("db", kv.Options{FS: b.fs, NoSync: true, CacheBytes: 1 << 20})
	b.must(err)
	for shard := range b.machines {
		b.machines[shard], err = machine.New(b.store, machine.Config{
			Shard: uint16(shard), Incarnation: incarnation, Durability: api.DurableDisk, Registry: b.registry,
		})
		b.must(err)
	}
}

func (b *bed) close() {
	b.must(errors.Join(b.machines[0].Close(), b.machines[1].Close(), b.store.Close()))
}

func (b *bed) restart() { b.close(); b.open() }

// entry applies an entry of one command, through the form it has in a log.
func (b *bed) entry(shard uint16, cmd machine.Command) machine.Outcome {
	b.t.Helper()
	e := &machine.Entry{At: b.now, Seed: uint64(b.now), Epoch: 1, Commands: []machine.Command{cmd}}
	encoded, err := e.Encode()
	b.must(err)
	out := b.applyEntry(shard, encoded)
	b.log = append(b.log, append([]byte{byte(shard)}, encoded...))
	return out
}

func (b *bed) applyEntry(shard uint16, encoded []byte) machine.Outcome {
	b.t.Helper()
	e, err := machine.DecodeEntry(encoded)
	b.must(err)
	outs, _, pending, err := b.machines[shard].Apply(e)
	b.must(err)
	b.must(pending.Wait())
	return outs[0]
}

// sameAgain applies the log to an empty store, which must end with the same
// rows: nothing but the log decides.
func (b *bed) sameAgain() {
	b.t.Helper()
	twin := newBed(b.t)
	for _, e := range b.log {
		twin.applyEntry(uint16(e[0]), e[1:])
	}
	twin.idText = b.idText
	was, is := b.rows(nil), twin.rows(nil)
	if !maps.Equal(was, is) {
		b.t.Errorf("the log applied again leads to other rows:\n%s", difference(was, is))
	}
	for shard, m := range b.machines {
		if m.Head() != twin.machines[shard].Head() {
			b.t.Errorf("shard %d is at %+v, applied again at %+v", shard, m.Head(), twin.machines[shard].Head())
		}
	}
}

// identity makes the command id a script names: version 7 and of the time of
// its first use, or version 4.
func (b *bed) identity(w *words) uuid.UUID {
	name := w.id
	if w.id4 != "" {
		name = "four-" + w.id4
	}
	if u, ok := b.ids[name]; ok && name != "" {
		return u
	}
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[:8], uint64(b.now)<<16)
	u[6], u[8] = 0x70, 0x80
	if w.id4 != "" {
		u = uuid.UUID{6: 0x40, 8: 0x80}
	}
	b.drawn++
	binary.BigEndian.PutUint32(u[12:], b.drawn)
	if name == "" {
		name = fmt.Sprintf("auto-%d", b.drawn)
	}
	b.ids[name], b.idText[u.String()] = u, "id:"+name
	return u
}

// internal applies a command of the store's own, which must succeed.
func (b *bed) internal(shard uint16, o *api.Operation, req api.CommandRequest) any {
	b.t.Helper()
	out := b.own(shard, o, req)
	if out.Err != nil {
		b.t.Fatalf("%s: %v", o.Name, out.Err)
	}
	return out.Response
}

// announce applies what a node says of itself.
func (b *bed) announce(body string) string {
	b.t.Helper()
	req := new(members.JoinRequest)
	b.must(json.Unmarshal([]byte(body), req))
	out := b.own(system.CatalogShard, members.Join.Operation, req)
	if out.Err != nil {
		return b.refusal(out.Err, "")
	}
	return b.answer(out.Response)
}

func (b *bed) own(shard uint16, o *api.Operation, req api.CommandRequest) machine.Outcome {
	b.t.Helper()
	id := b.identity(&words{})
	req.SetCommandID(id.String())
	fingerprint, encoded, err := wire.Fingerprint(o.Number, req)
	b.must(err)
	return b.entry(shard, machine.NewCommand(o, machine.Identity{ID: id, Principal: access.System}, fingerprint, encoded, nil))
}

// propagate brings the data shard to the catalog's revision.
func (b *bed) propagate() {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	has, err := changes.Revision(snap, dataShard)
	b.must(err)
	news, err := changes.Since(snap, system.CatalogShard, has, 64)
	b.must(err)
	if len(news) > 0 {
		b.internal(dataShard, system.Install.Operation, &system.InstallRequest{Changes: news})
	}
}

// tick lets due work happen in both shards.
func (b *bed) tick(w *words) string {
	limit := 10_000
	if len(w.rest) > 0 {
		_, err := fmt.Sscan(w.take(), &limit)
		b.must(err)
	}
	ticks, owners := 0, 0
	for shard, m := range b.machines {
		for ; ticks < limit; ticks++ {
			if next := m.NextDue(); next == 0 || next > b.now {
				break
			}
			owners += b.entry(uint16(shard), machine.Tick()).Tick.Owners
		}
	}
	if ticks == 10_000 {
		b.t.Fatal("due work never ends")
	}
	next := "nothing more is ever due"
	if due := b.machines[dataShard].NextDue(); due != 0 {
		next = "next at " + when(due)
	}
	return fmt.Sprintf("ticks: %d, due rows: %d, %s", ticks, owners, next)
}

// sound runs every check over both shards.
func (b *bed) sound() string {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	counts := map[string]int64{}
	for shard := range b.machines {
		a := op.NewAudit(op.Scope{
			R: snap, Now: b.now, Space: table.Space{Shard: uint16(shard)}, Incarnation: incarnation, Registry: b.registry,
		}, b.registry.Resources())
		a.Counts, a.Shards = counts, dataShard
		b.must(a.Run())
		for _, f := range a.Findings {
			b.t.Errorf("check, shard %d: %s at %s: %s", shard, f.Invariant, f.Where, f.Text)
		}
	}
	out := "sound"
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] != 0 {
			out += fmt.Sprintf(" %s=%d", name, counts[name])
		}
	}
	return out
}

func (b *bed) digest() string {
	return b.name("digest", fmt.Sprintf("%016x", b.machines[dataShard].Head().Digest))
}
