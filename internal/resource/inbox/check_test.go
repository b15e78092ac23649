package inbox

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/queue"
	"github.com/keyload/keyload/internal/table"
)

func TestTheCheckFindsEverySingleMissingRow(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	_, err := b.process(b.receive(), "s")
	b.must(err)
	_, err = b.arrive("evt")
	b.must(err)
	_, err = b.feed("d", 5)
	b.must(err)
	own := map[byte]bool{byte(table.Due): true}
	for _, x := range Resource().Tables {
		own[byte(x.ID)] = true
	}
	rows := b.rows()
	snap := b.store.NewSnapshot()
	b.must(snap.Scan([]byte{byte(table.Due)}, []byte{byte(table.Due) + 1}, false, func(k, v []byte) (bool, error) {
		if k[11] == byte(table.DueInbox) {
			rows[string(k)] = string(v)
		}
		return true, nil
	}))
	b.must(snap.Close())
	seen := 0
	for k, v := range rows {
		if !own[k[0]] {
			continue
		}
		seen++
		tx := b.store.NewTx()
		edit := func(fn func()) {
			tx.Begin()
			fn()
			p, err := tx.Commit()
			b.must(err)
			b.must(p.Wait())
		}
		edit(func() { tx.Delete([]byte(k)) })
		if findings(b) == 0 {
			t.Errorf("the check does not miss the row of table %d", k[0])
		}
		edit(func() { tx.Put([]byte(k), []byte(v)) })
		b.must(tx.Close())
	}
	if seen != 3*4 {
		t.Errorf("%d rows, want record, order, head and due row of a message, an input from elsewhere and an event", seen)
	}
}

func TestTheCheckFindsAnInputThatItsOwnerCannotHave(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	space := table.Space{Shard: shard, Partition: [16]byte{1}}
	for _, in := range []Input{
		ofMessage(table.Owner{Space: space}, "m"), OfEvent(table.Owner{Space: space}, "s", 1, 2),
		{table.Owner{Space: space, Resource: 1}, ofElsewhere(space, "s", "i").id},
	} {
		tx := b.store.NewTx()
		tx.Begin()
		k := key{in.owner, in.id, "scope", 1}
		processed.Insert(tx, k, &record{Position: 1, Epoch: 1, At: b.now})
		order.Insert(tx, orderKey{k.Owner, b.now, 1}, &k)
		var h head
		table.Arm(tx, shard, table.DueInbox, k.Owner.Append(nil), &h.Armed, b.now+horizonMillis)
		heads.Put(tx, k.Owner, &h)
		a := op.NewAudit(op.Scope{R: tx, Now: b.now, Space: table.Space{Shard: shard}, Registry: b.registry}, []op.Resource{Resource(), directory.Resource(nil)})
		a.Partitions = map[[16]byte]bool{space.Partition: true}
		b.must(a.Run())
		if len(a.Findings) != 1 || a.Findings[0].Invariant != "form" {
			t.Errorf("%q of resource %d: %+v", in.id, in.owner.Resource, a.Findings)
		}
		b.must(tx.Close())
	}
}

func findings(b *bed) int {
	snap := b.store.NewSnapshot()
	defer snap.Close()
	a := op.NewAudit(op.Scope{R: snap, Now: b.now, Space: table.Space{Shard: shard}, Registry: b.registry}, []op.Resource{Resource(), queue.Resource(), partitions.Resource(), directory.Resource(nil)})
	b.must(a.Run())
	return len(a.Findings)
}

// A record under another owner, with everything that follows from one, is of a command
// that has processed an input already: the record is not what was stored.
func TestTheCheckFindsTwoInputsOfOneCommand(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	b.enqueue("in", "m")
	_, err := b.process(b.receive(), "s")
	b.must(err)
	tx := b.store.NewTx()
	tx.Begin()
	var k key
	var v record
	b.must(processed.Scan(tx, table.Range{}, func(one key, r *record) (bool, error) {
		k, v = one, *r
		return true, nil
	}))
	for _, c := range []struct {
		position uint64
		findings int
	}{{v.Position, 1}, {v.Position - 1, 0}} {
		other, r := k, v
		other.Owner.Resource, other.Scope, r.Position = k.Owner.Resource+1, "another", c.position
		processed.Put(tx, other, &r)
		order.Put(tx, orderKey{other.Owner, r.At, r.Position}, &other)
		h := head{Oldest: r.At}
		table.Arm(tx, shard, table.DueInbox, other.Owner.Append(nil), &h.Armed, r.At+horizonMillis)
		heads.Put(tx, other.Owner, &h)
		a := op.NewAudit(op.Scope{R: tx, Now: b.now, Space: table.Space{Shard: shard}, Registry: b.registry}, []op.Resource{Resource(), partitions.Resource(), directory.Resource(nil)})
		b.must(a.Run())
		if len(a.Findings) != c.findings || c.findings > 0 && (a.Findings[0].Invariant != "position" || a.Findings[0].Derived) {
			t.Errorf("with a record of position %d, %+v", c.position, a.Findings)
		}
		order.Delete(tx, orderKey{other.Owner, r.At, r.Position})
	}
	b.must(tx.Close())
}
