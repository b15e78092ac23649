package queue

import (
	"fmt"
	"os"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
)

// reads that are not of the queue's own rows, or of its head, which stays in
// memory: the receipt, the queue's definition, the head, the partition's name.
const otherReads = 4

// storeDelivers is the read of whether the store delivers, which stays in memory.
const storeDelivers = 1

// cost is what one command cost in the queue's own rows, wherever a read was
// answered from. The machine's share (look for a receipt, store it, store the
// shard's head) is taken off.
func (b *bed) cost(fn func()) kv.Work {
	b.t.Helper()
	before := b.m.Work()
	fn()
	w := b.m.Work()
	return kv.Work{
		Gets: w.Gets + w.CacheHits - before.Gets - before.CacheHits - otherReads, Scans: w.Scans - before.Scans, Scanned: w.Scanned - before.Scanned,
		Puts: w.Puts - before.Puts - 2, Deletes: w.Deletes - before.Deletes,
	}
}

func (b *bed) costs(what string, want kv.Work, fn func()) {
	b.t.Helper()
	if got := b.cost(fn); got != want {
		b.t.Errorf("%s cost %+v, want %+v", what, got, want)
	}
}

func TestEveryOperationTouchesAsManyKeysAsItsTableSays(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(50)
	b.enqueue(msg("warm")) // heads and definitions are in memory, the due row of the lane is armed
	b.ack(b.one())
	const n = 10
	var ds []api.Delivery
	b.costs("enqueue", kv.Work{Gets: 1 + storeDelivers, Puts: 4}, func() { b.enqueue(msg("a")) })
	b.costs("receive of n", kv.Work{Gets: 2*n + storeDelivers, Scans: 1, Scanned: n, Puts: n + 2, Deletes: n}, func() { ds = b.receive(n).Deliveries })
	b.costs("ack of all n", kv.Work{Gets: n, Puts: n + 2, Deletes: n + 1}, func() { b.ack(ds...) })
	b.costs("receive of n", kv.Work{Gets: 2*n + storeDelivers, Scans: 1, Scanned: n, Puts: n + 2, Deletes: n}, func() { ds = b.receive(n).Deliveries })
	b.costs("ack of the first of n", kv.Work{Gets: 2, Puts: 4, Deletes: 1}, func() { b.ack(ds[0]) })
	b.costs("ack of the others", kv.Work{Gets: n, Puts: n - 1 + 2, Deletes: n - 1 + 2}, func() { b.ack(ds[1:]...) })
	b.costs("receive of one", kv.Work{Gets: 2 + storeDelivers, Scans: 1, Scanned: 1, Puts: 3, Deletes: 1}, func() { ds = b.receive(1).Deliveries })
	b.costs("renewal of one", kv.Work{Gets: 1, Puts: 3, Deletes: 1}, func() {
		r := b.complete(api.CompleteItem{Token: ds[0].Token, Action: api.ActionRenew})
		ds[0].Token = r[0].Token
	})
	b.costs("ack of one", kv.Work{Gets: 1, Puts: 3, Deletes: 2}, func() { b.ack(ds[0]) })
	ds = b.receive(1).Deliveries
	b.costs("nack with delay", kv.Work{Gets: 1, Puts: 4, Deletes: 2}, func() { b.nack(ds[0], 1_000) }) // the due row moves
}

func TestAReceiveLooksAtWhatItDeliversWhateverTheDepth(t *testing.T) {
	depths := []int{300, 10_000}
	if os.Getenv("KEYLOAD_LONG") != "" {
		depths = append(depths, 1_000_000)
	}
	for _, depth := range depths {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			b := newBed(t, api.QueuePolicy{MaxMessages: 2_000_000})
			b.fill(depth)
			for range 5 { // claimed rows before the first live one must not count
				w := b.cost(func() { b.ack(b.receive(20).Deliveries...) })
				if w.Scanned != 20 {
					t.Errorf("a receive of 20 looked at %d rows", w.Scanned)
				}
				r := b.receive(1)
				if len(r.Deliveries) != 1 || r.Examined != (api.ReceiveExamined{Ready: 1}) {
					t.Errorf("received %d, examined %+v", len(r.Deliveries), r.Examined)
				}
			}
		})
	}
}

func TestAReceiveWithTenMessagesDueLooksAtElevenScheduledRows(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for i := range 3_000 {
		m := msg(fmt.Sprintf("later%d", i))
		m.NotBefore = api.Time(start + 3_600_000)
		if i < 10 {
			m.NotBefore = api.Time(start + 1_000)
		}
		b.enqueue(m)
	}
	b.now += 1_000
	var r *api.QueuesReceiveResponse
	w := b.cost(func() { r = b.receive(10) })
	if len(r.Deliveries) != 10 || r.Examined.Scheduled != 10 || w.Scanned != 11+10 {
		t.Errorf("received %d, examined %+v, scanned %d", len(r.Deliveries), r.Examined, w.Scanned)
	}
}

func TestALeaseThatNeverRanOutCostsNoScan(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.fill(100)
	for range 20 {
		b.ack(b.receive(2).Deliveries...)
	}
	w := b.cost(func() { b.receive(1) })
	if w.Scans != 1 {
		t.Errorf("a receive made %d scans, want the one of ready entries", w.Scans)
	}
}
