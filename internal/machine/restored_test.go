package machine

import (
	"errors"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/resource/changes"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
)

// installed is the command by which a shard learns that the store delivers, or not.
func (b *bed) installed(revision uint64, d api.Dispatch) Command {
	b.t.Helper()
	d.Revision = revision
	return b.internal(system.Install.Operation, &system.InstallRequest{
		Changes: []changes.Change{{Revision: revision, Kind: changes.Dispatch, Record: table.EncodeCBOR(nil, &d)}},
	})
}

// That what is due waits after a restore is a rule of the state, not of whoever
// looks when to tick: a tick that comes all the same takes nothing away, in the very
// entry even that lets the store go on after it.
func TestATickDoesNothingInARestoredStoreThatWasNotLetGoOn(t *testing.T) {
	b := newBed(t)
	b.accepted(b.do(b.commit(worker.with(b.id4()), put("a", "{}"))))
	before := b.count(table.Due)
	snap := b.store.NewSnapshot()
	revision, err := changes.Revision(snap, shard)
	b.must(errors.Join(err, snap.Close()))
	b.accepted(b.do(b.installed(revision+1, api.Dispatch{Paused: true, Restored: true})))
	b.now += 10 * keepMillis
	for _, restart := range []bool{false, true} {
		if restart {
			b.restart()
		}
		if out := b.do(Tick()); out.Tick != (Ticked{}) || out.Err != nil || b.m.NextDue() != 0 {
			t.Errorf("a tick did %+v, %v; the next is due at %d", out.Tick, out.Err, b.m.NextDue())
		}
	}
	if b.count(table.Receipt) != 1 || b.count(table.Due) != before {
		t.Errorf("%d receipts and %d due rows are left", b.count(table.Receipt), b.count(table.Due))
	}
	outs := b.apply(b.entry(Tick(), b.installed(revision+2, api.Dispatch{}), Tick()))
	if outs[0].Tick != (Ticked{}) || outs[2].Tick.Owners == 0 || b.count(table.ReceiptAt) != 0 {
		t.Errorf("the ticks around the end of the pause did %+v and %+v", outs[0].Tick, outs[2].Tick)
	}
	b.check()
}
