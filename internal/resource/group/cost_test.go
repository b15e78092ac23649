package group

import (
	"fmt"
	"os"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// otherReads are not of the group's own rows, or stay in memory: the receipt, the
// topic's definition, the group's definition and head, the source's head, the
// partition's name; of a receive also whether the store delivers.
const (
	otherReads   = 6
	receiveReads = otherReads + 1
)

// cost is what one command cost in the group's own rows, wherever a read was
// answered from. The machine's share (look for a receipt, store it, store the
// shard's head) is taken off, and so are reads of what stays in memory.
func (b *bed) cost(reads uint64, fn func()) kv.Work {
	b.t.Helper()
	before := b.m.Work()
	fn()
	w := b.m.Work()
	return kv.Work{
		Gets: w.Gets + w.CacheHits - before.Gets - before.CacheHits - reads, Scans: w.Scans - before.Scans, Scanned: w.Scanned - before.Scanned,
		Puts: w.Puts - before.Puts - 2, Deletes: w.Deletes - before.Deletes,
	}
}

func (b *bed) costs(what string, want kv.Work, fn func()) {
	b.t.Helper()
	if got := b.cost(receiveReads, fn); got != want {
		b.t.Errorf("%s cost %+v, want %+v", what, got, want)
	}
}

// Acks do not look at the source.
func (b *bed) ackCosts(what string, want kv.Work, fn func()) {
	b.t.Helper()
	if got := b.cost(otherReads-1, fn); got != want {
		b.t.Errorf("%s cost %+v, want %+v", what, got, want)
	}
}

func TestEveryOperationTouchesAsManyKeysAsItsTableSays(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(400)
	b.ack(b.one()) // heads and definitions are in memory, the due row of the group is armed
	const n = 10
	var d []api.GroupDelivery
	b.costs("receive of n new ones", kv.Work{Scans: 1, Scanned: n, Puts: n + 2}, func() { d = b.receive(n).Deliveries })
	// Each is read and deleted, their lease row is read and deleted, the head is written.
	b.ackCosts("ack of all n", kv.Work{Gets: n + 1, Puts: 1, Deletes: n + 1}, func() { b.ack(d...) })
	d = b.receive(n).Deliveries
	// The row and the lease row are read; a run with its end and what is left of the
	// lease are written. Further ones look at their neighbours.
	b.ackCosts("ack of the second", kv.Work{Gets: 2, Puts: 4, Deletes: 1}, func() { b.ack(d[1]) })
	b.ackCosts("ack of the third", kv.Work{Gets: 5, Puts: 4, Deletes: 2}, func() { b.ack(d[2]) })
	b.ackCosts("ack of the fifth, apart", kv.Work{Gets: 4, Puts: 4, Deletes: 1}, func() { b.ack(d[4]) })
	b.ackCosts("ack of the fourth, between", kv.Work{Gets: 5, Puts: 4, Deletes: 3}, func() { b.ack(d[3]) })
	b.ackCosts("ack of the head", kv.Work{Gets: 3, Puts: 2, Deletes: 3}, func() { b.ack(d[0]) })
	b.ackCosts("nack that waits", kv.Work{Gets: 3, Puts: 5, Deletes: 1}, func() { b.nack(d[5], 1_000) }) // the due row moves
	b.ackCosts("release", kv.Work{Gets: 3, Puts: 4}, func() { b.did(api.CompleteItem{Token: d[6].Token, Action: api.ActionRelease}) })
	b.ackCosts("renewal", kv.Work{Gets: 3, Puts: 4}, func() { b.did(api.CompleteItem{Token: d[7].Token, Action: api.ActionRenew}) })
	b.costs("receive of one retry", kv.Work{Gets: 2, Scans: 1, Scanned: 1, Puts: 3, Deletes: 1}, func() { b.one() })
}

// spanning makes a group whose window spans so many positions, with so many more
// before the tail: the head and the last four are leased, all between are finished.
func spanning(t *testing.T, span, backlog int) (b *bed, head api.GroupDelivery, rest []api.GroupDelivery) {
	b = newBed(t, api.GroupPolicy{MaxWindow: 65_536, MaxInFlight: 65_536, MaxLeaseSeconds: 43_200})
	b.fill(span + backlog)
	take := func(n int) []api.GroupDelivery {
		r, err := b.tryReceive(api.SubscriptionsReceiveRequest{MaxEvents: int64(n), LeaseSeconds: 40_000})
		b.must(err)
		return r.Deliveries
	}
	head = take(1)[0]
	for done := 1; done < span-4; {
		d := take(min(256, span-4-done))
		done += len(d)
		b.ack(d...)
	}
	return b, head, take(4)
}

func TestClaimAckAndStatusCostTheSameWhateverTheSpanAndTheBacklog(t *testing.T) {
	sizes := []struct{ span, backlog int }{{10, 10}, {10_000, 10}, {10, 100_000}}
	if os.Getenv("KEYLOAD_LONG") != "" {
		sizes = append(sizes, struct{ span, backlog int }{65_000, 1_000_000})
	}
	type price struct{ claim, middle, head, status kv.Work }
	var first price
	for i, c := range sizes {
		b, head, rest := spanning(t, c.span, c.backlog)
		var p price
		var claimed []api.GroupDelivery
		p.claim = b.cost(receiveReads, func() { claimed = b.receive(3).Deliveries })
		p.middle = b.cost(otherReads-1, func() { b.ack(rest[2]) })
		b.must(b.view(func(v *op.View) error {
			before := v.R.Work()
			_, err := runStatus(v, &api.SubscriptionsStatusRequest{Group: b.ref("g"), Rows: 32})
			w := v.R.Work()
			p.status = kv.Work{Gets: w.Gets - before.Gets, Scans: w.Scans - before.Scans, Scanned: w.Scanned - before.Scanned}
			return err
		}))
		p.head = b.cost(otherReads-1, func() { b.ack(head) })
		if len(claimed) != 3 || b.status().State.Checkpoint != uint64(c.span-4) {
			t.Fatalf("%+v: claimed %d, %+v", c, len(claimed), b.status().State)
		}
		if i == 0 {
			first = p
		} else if p != first {
			t.Errorf("%+v: %+v, want %+v", c, p, first)
		}
	}
}

func TestAPublishCostsTheSameWhoeverReads(t *testing.T) {
	var first kv.Work
	for i, groups := range []int{0, 1, 10} {
		b := emptyBedOf(t)
		for g := range groups {
			b.create(fmt.Sprint("g", g), api.GroupDefinition{})
		}
		b.fill(3)
		before := b.m.Work()
		b.fill(5)
		w := b.m.Work()
		cost := kv.Work{
			Gets: w.Gets + w.CacheHits - before.Gets - before.CacheHits, Scans: w.Scans - before.Scans, Scanned: w.Scanned - before.Scanned,
			Puts: w.Puts - before.Puts, Deletes: w.Deletes - before.Deletes, Bytes: w.Bytes - before.Bytes,
		}
		if i == 0 {
			first = cost
		} else if cost != first {
			t.Errorf("with %d groups %+v, want %+v", groups, cost, first)
		}
	}
}

// stored is how many bytes the rows of some tables have.
func (b *bed) stored(ids ...table.ID) (n int) {
	for k, v := range b.rows() {
		for _, id := range ids {
			if k[0] == byte(id) {
				n += len(k) + len(v)
			}
		}
	}
	return n
}

func TestTenGroupsKeepOneCopyOfEveryEventAndOnlyTheirOwnRows(t *testing.T) {
	const events, groups = 100, 10
	alone := emptyBedOf(t)
	alone.fill(events)
	b := emptyBedOf(t)
	for g := range groups {
		b.create(fmt.Sprint("g", g), api.GroupDefinition{})
	}
	b.fill(events)
	sources := []table.ID{table.Event, table.EventID, table.SourceHead}
	own := []table.ID{table.GroupRow, table.GroupReady, table.GroupWait, table.GroupLease, table.GroupKeyed, table.GroupDead, table.GroupSkip, table.GroupRunEnd}
	if got, want := b.stored(sources...), alone.stored(sources...); got != want {
		t.Errorf("%d bytes of events with ten groups, %d without", got, want)
	}
	if n := b.stored(own...); n != 0 {
		t.Errorf("groups that have not received anything hold %d bytes", n)
	}
	for g := range groups {
		group := fmt.Sprint("g", g)
		d := b.of(group, events).Deliveries
		if per := b.stored(own...) / events; per > 80 {
			t.Errorf("a leased position takes %d bytes", per)
		}
		b.finish(group, api.ActionAck, d...)
		if n := b.stored(own...); n != 0 {
			t.Errorf("a group that is done holds %d bytes", n)
		}
	}
	if got, want := b.stored(sources...), alone.stored(sources...); got != want {
		t.Errorf("%d bytes of events at the end, %d without groups", got, want)
	}
}
