package machine

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
)

// pause changes a resource as the catalog would.
func (b *bed) pause(name string) {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	r, err := directory.Lookup(snap, shard, "default", "main", name)
	b.must(err)
	revision, err := changes.Revision(snap, shard)
	b.must(err)
	b.must(snap.Close())
	paused := *r
	paused.Paused, paused.Version = true, r.Version+1
	who := Identity{Principal: access.System}
	b.accepted(b.do(b.command(who, system.Install.Operation, &system.InstallRequest{Changes: []changes.Change{
		{Revision: revision + 1, Kind: changes.Resource, Record: table.EncodeCBOR(nil, &paused)},
	}})))
}

// stopped fails unless applying the entry stops the shard with damage or an
// unknown operation; nothing of it may have reached the store.
func (b *bed) stopped(e *Entry, says string) {
	b.t.Helper()
	rows := b.rows()
	_, _, _, err := b.m.Apply(e)
	if err == nil || fault.From(err) != nil && fault.From(err).Code != fault.Corruption || !strings.Contains(err.Error(), says) {
		b.t.Fatalf("want a stop that says %q, got %v", says, err)
	}
	if d := difference(b.rows(), rows); d != "" {
		b.t.Fatalf("the entry that stopped the shard changed the store: %s", d)
	}
}

func TestACallerWithoutRightsLeavesNoTrace(t *testing.T) {
	b := newBed(t)
	b.accepted(b.do(b.commit(worker, put("a", "{}"))))
	rows, digest := b.rows(), b.m.Head().Digest
	for principal, reason := range map[string]string{"nobody": "unknown_principal", "reader": "missing_capability", "root": "unknown_principal"} {
		who := worker
		who.Principal = principal
		cmd := b.commit(who, put("a", `{"n":1}`))
		for range 2 {
			b.refused(b.do(cmd), fault.PermissionDenied, reason, false)
		}
	}
	stranger := worker
	stranger.Tenant = "other"
	b.refused(b.do(b.commit(stranger, put("a", `{"n":1}`))), fault.PermissionDenied, "unknown_principal", false)
	if d := difference(b.rows(), rows); d != "" || b.m.Head().Digest != digest {
		t.Errorf("the state changed: %s", d)
	}
}

func TestAPrincipalIsRefusedFromTheMillisecondItExpires(t *testing.T) {
	b := newBed(t) // "brief" expires at start+1000
	who := worker
	who.Principal = "brief"
	cmd := b.commit(who, put("a", "{}"))
	b.now = start + 999
	b.accepted(b.do(cmd))
	b.now = start + 1000
	b.refused(b.do(b.commit(who, put("a", "{}"))), fault.PermissionDenied, "principal_expired", false)
	b.refused(b.do(cmd), fault.PermissionDenied, "principal_expired", false) // a repetition is authorized again
}

func TestLoggedTimeNeverGoesBack(t *testing.T) {
	b := newBed(t)
	at := func(now int64) api.Time {
		b.now = now
		cmd := b.commit(worker.with(b.id7At(start)), put("a", "{}"))
		return b.accepted(b.do(cmd)).Response.(*api.CommandsCommitResponse).Receipt.CommittedAt
	}
	for _, step := range []struct{ clock, want int64 }{
		{start + 500, start + 500}, {start + 100, start + 500}, {start - 1_000_000, start + 500}, {start + 501, start + 501}, {start + 501, start + 501},
	} {
		if got := at(step.clock); got != api.Time(step.want) {
			t.Errorf("at %d the logged time is %d, want %d", step.clock, got, step.want)
		}
		b.restart()
	}
}

func TestTheEpochNeverGoesBack(t *testing.T) {
	b := newBed(t)
	for _, step := range []struct{ epoch, want uint64 }{{3, 3}, {2, 3}, {4, 4}} {
		e := b.entry(b.commit(worker, put("a", "{}")))
		e.Epoch = step.epoch
		out := b.accepted(b.apply(e)[0])
		if got := out.Response.(*api.CommandsCommitResponse).Receipt.Token.OwnershipEpoch; got != step.want || b.m.Head().Epoch != step.want {
			t.Errorf("at epoch %d the token says %d", step.epoch, got)
		}
	}
}

func TestEveryCommandAdvancesThePositionWhateverBecomesOfIt(t *testing.T) {
	b := newBed(t)
	before := b.m.Head().Position
	cmd := b.commit(worker, put("a", "{}"))
	who := worker
	who.Principal = "nobody"
	outs := b.apply(b.entry(cmd, cmd, b.commit(who, put("a", "{}")), b.commit(worker, putAt("a", "{}", 9)), Tick()))
	for i, o := range outs {
		if o.Position != before+uint64(i)+1 {
			t.Errorf("command %d has position %d, want %d", i, o.Position, before+uint64(i)+1)
		}
	}
	b.restart()
	if got := b.m.Head().Position; got != before+5 {
		t.Errorf("the shard stands at %d, want %d", got, before+5)
	}
}

func TestAnOperationThisProgramDoesNotKnowStopsTheShard(t *testing.T) {
	b := newBed(t)
	cmd := b.commit(worker, put("a", "{}"))
	good := cmd
	cmd.Op = 54321
	b.stopped(b.entry(good, cmd), "operation 54321")
	b.restart()
	cmd.Op = api.DocumentsGet.Number // a query is no command
	b.stopped(b.entry(cmd), "does not know")
}

func TestADamagedRequestInTheLogStopsTheShard(t *testing.T) {
	b := newBed(t)
	cmd := b.commit(worker, put("a", "{}"))
	cmd.Request = cmd.Request[:len(cmd.Request)-1]
	b.stopped(b.entry(cmd), "damaged")
}

// Damage is no refusal: a refusal would be stored as the outcome, and another
// replica with sound bytes would answer otherwise.
func TestADamagedRowStopsTheShardAndIsNeverARefusal(t *testing.T) {
	for _, id := range []table.ID{table.Principal, table.ResourceByName, table.Document, table.DocumentHead, table.Receipt, table.Partition} {
		b := newBed(t)
		cmd := b.commit(worker, put("a", "{}"))
		b.accepted(b.do(cmd))
		b.damage(id)
		again := b.commit(worker, put("a", `{"n":1}`))
		if id == table.Receipt {
			again = cmd
		}
		rows := b.rows()
		outs, _, _, err := b.m.Apply(b.entry(again))
		if err == nil {
			t.Errorf("table %d: the damage was answered with %s", id, shown(t, outs[0]))
			continue
		}
		if !errors.Is(err, kv.ErrCorrupt) && fault.CodeOf(err) != fault.Corruption {
			t.Errorf("table %d: the shard stopped with %v", id, err)
		}
		if d := difference(b.rows(), rows); d != "" {
			t.Errorf("table %d: something was written: %s", id, d)
		}
	}
}

// damage overwrites every row of a table with bytes that are no record.
func (b *bed) damage(id table.ID) {
	b.t.Helper()
	b.must(b.m.Close())
	tx := b.store.NewTx()
	tx.Begin()
	n := 0
	for k := range b.rows() {
		if k[0] == byte(id) {
			tx.Put([]byte(k), []byte{0xFF, 0xFF})
			n++
		}
	}
	if n == 0 {
		b.t.Fatalf("table %d has no row to damage", id)
	}
	p, err := tx.Commit()
	b.must(err)
	b.must(errors.Join(p.Wait(), tx.Close()))
	b.m, err = New(b.store, Config{Shard: shard, Incarnation: incarnation, Durability: api.DurableDisk, Registry: b.registry})
	b.must(err)
}

func TestADamagedHeadOrDueRowIsFoundWhenTheShardOpens(t *testing.T) {
	for _, id := range []table.ID{table.ShardHead, table.Due} {
		b := newBed(t)
		b.accepted(b.do(b.commit(worker, put("a", "{}"))))
		tx := b.store.NewTx()
		tx.Begin()
		key := []byte{byte(id), 0, shard}
		if id == table.Due {
			for k := range b.rows() {
				if k[0] == byte(id) {
					key = []byte(k)
				}
			}
		}
		tx.Put(key, []byte{0xFF})
		p, err := tx.Commit()
		b.must(err)
		b.must(errors.Join(p.Wait(), tx.Close()))
		if _, err := New(b.store, Config{Shard: shard, Registry: b.registry}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("table %d: opening says %v", id, err)
		}
	}
}

func TestARefusedBatchWakesNobody(t *testing.T) {
	b := newBed(t)
	enqueue := api.Mutation{Enqueue: &api.Enqueue{Queue: "work", Message: api.Message{Payload: api.JSON("1")}}}
	for want, ms := range map[int][]api.Mutation{1: {enqueue}, 0: {enqueue, putAt("a", "{}", 9)}} {
		_, hints, pending, err := b.m.Apply(b.entry(b.commit(root, ms...)))
		b.must(err)
		b.must(pending.Wait())
		if len(hints) != want {
			t.Errorf("%d mutations gave %d hints, want %d", len(ms), len(hints), want)
		}
	}
}
