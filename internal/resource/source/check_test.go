package source

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// damagedBed has a topic with 10 events of which 4 are purged and removed, 6 is
// the cut, and the ids of the first 4 are listed. The others age.
func damagedBed(t *testing.T) *bed {
	b := newBed(t, api.SourcePolicy{MaxAgeSeconds: 1000})
	_, err := b.publish(numbered(1, 10)...)
	b.must(err)
	_, err = b.purge(4)
	b.must(err)
	b.settle(100)
	_, err = b.purge(6)
	b.must(err)
	b.check()
	return b
}

func TestTheCheckFindsEachKindOfDamage(t *testing.T) {
	changeHead := func(fn func(h *Head)) func(c *op.Ctx, k Key) {
		return func(c *op.Ctx, k Key) {
			h, _, _ := heads.Get(c.R, k)
			fn(&h)
			heads.Put(c.Tx, k, &h)
		}
	}
	changeAge := func(fn func(h *Head, due func(int64))) func(c *op.Ctx, k Key) {
		return func(c *op.Ctx, k Key) {
			h, _, _ := heads.Get(c.R, k)
			fn(&h, func(when int64) { arm(c, k, table.DueAge, &h.ArmedAge, when) })
			heads.Put(c.Tx, k, &h)
		}
	}
	for _, c := range []struct {
		name, invariant string
		damage          func(c *op.Ctx, k Key)
	}{
		{"tail too high", sourceEvents, changeHead(func(h *Head) { h.Tail++ })},
		{"tail too low", sourceEvents, changeHead(func(h *Head) { h.Tail-- })},
		{"cut above tail", sourceMarks, changeHead(func(h *Head) { h.Cut = 11 })},
		{"bytes at the tail", sourceEvents, changeHead(func(h *Head) { h.TailBytes++ })},
		{"bytes at the cut", sourceEvents, changeHead(func(h *Head) { h.CutBytes-- })},
		{"removed too low", sourceEvents, changeHead(func(h *Head) { h.Removed-- })},
		{"forgotten too high", sourceIDs, changeHead(func(h *Head) { h.Forgotten++ })},
		{"not armed", sourceMarks, changeHead(func(h *Head) { h.ArmedPurge = 0 })},
		{"armed elsewhere", sourceMarks, changeHead(func(h *Head) { h.ArmedIDs++ })},
		{"kept shorter than listed", sourceIDs, changeHead(func(h *Head) { h.KeepIDsUntil-- })},
		{"no head", sourceOwner, func(c *op.Ctx, k Key) { heads.Delete(c.Tx, k) }},
		{"event gone", sourceEvents, func(c *op.Ctx, k Key) { events.Delete(c.Tx, eventKey{k, 8}) }},
		{"purged event gone too early", sourceEvents, func(c *op.Ctx, k Key) { events.Delete(c.Tx, eventKey{k, 5}) }},
		{"event of another content", sourceIDs, func(c *op.Ctx, k Key) {
			row, _, _ := c.R.Get(events.Bytes(eventKey{k, 8}))
			changed := append([]byte(nil), row...)
			changed[len(changed)-1] ^= 1
			c.Tx.Put(events.Bytes(eventKey{k, 8}), changed)
		}},
		{"event beyond the tail", sourceEvents, func(c *op.Ctx, k Key) {
			row, _, _ := c.R.Get(events.Bytes(eventKey{k, 10}))
			c.Tx.Put(events.Bytes(eventKey{k, 11}), row)
		}},
		{"identity gone", sourceIDs, func(c *op.Ctx, k Key) { identities.Delete(c.Tx, idKey{k, "e8"}) }},
		{"identity of a purged event gone", sourceIDs, func(c *op.Ctx, k Key) { identities.Delete(c.Tx, idKey{k, "e2"}) }},
		{"identity too many", sourceIDs, func(c *op.Ctx, k Key) { identities.Put(c.Tx, idKey{k, "x"}, &identity{Position: 8}) }},
		{"identity elsewhere", sourceIDs, func(c *op.Ctx, k Key) { identities.Put(c.Tx, idKey{k, "e2"}, &identity{Position: 3}) }},
		{"list gone", sourceIDs, func(c *op.Ctx, k Key) { purgedIDs.Delete(c.Tx, eventKey{k, 4}) }},
		{"list with a gap", sourceIDs, func(c *op.Ctx, k Key) {
			h, _, _ := heads.Get(c.R, k)
			purgedIDs.Put(c.Tx, eventKey{k, 4}, &idList{Until: h.KeepIDsUntil, IDs: []string{"e3", "e4"}})
		}},
		{"pin below what the head remembers", sourcePins, func(c *op.Ctx, k Key) {
			at := uint64(7)
			markers.Put(c.Tx, marker{k, "g"}, &at)
		}},
		{"pin below the cut", sourcePins, func(c *op.Ctx, k Key) {
			at := uint64(5)
			markers.Put(c.Tx, marker{k, "g"}, &at)
			if err := Repin(c, k); err != nil {
				panic(err)
			}
		}},
		{"pins remembered beyond the tail", sourcePins, changeHead(func(h *Head) { h.PinFloor = 11 })},
		{"age armed too late", sourceAge, changeAge(func(h *Head, due func(int64)) { due(h.ArmedAge + heldMillis) })},
		{"age not armed", sourceAge, changeAge(func(h *Head, due func(int64)) { due(0) })},
		{"age armed without a due row", "due", changeHead(func(h *Head) { h.ArmedAge-- })},
		{"sweep without a due row", sourceAge, func(c *op.Ctx, k Key) {
			sweeps.Put(c.Tx, sweepOwner(k.Owner), &sweep{Next: []byte{1}, Armed: 5})
		}},
		{"sweep that ended", sourceAge, func(c *op.Ctx, k Key) { sweeps.Put(c.Tx, sweepOwner(k.Owner), &sweep{}) }},
		{"due row of no sweep", "due", func(c *op.Ctx, k Key) {
			table.DueRows.Put(c.Tx, table.DueKey{Shard: 1, When: 5, Kind: table.DueAge, Owner: string(sweepOwner(k.Owner).Append(nil))}, &table.None{})
		}},
		{"due row of an age of nothing", "due", func(c *op.Ctx, k Key) {
			k.StreamID = "none"
			table.DueRows.Put(c.Tx, table.DueKey{Shard: 1, When: 5, Kind: table.DueAge, Owner: string(k.Append(nil))}, &table.None{})
		}},
		{"due row of nothing", "due", func(c *op.Ctx, k Key) {
			k.StreamID = "none"
			table.DueRows.Put(c.Tx, table.DueKey{Shard: 1, When: 5, Kind: table.DuePurgedIDs, Owner: string(k.Append(nil))}, &table.None{})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := damagedBed(t)
			b.must(b.apply(func(x *op.Ctx) error { c.damage(x, b.orders()); return nil }))
			findings, _ := b.audit()
			for _, f := range findings {
				if f.Invariant == c.invariant {
					return
				}
			}
			t.Errorf("found %v, want one of %s", findings, c.invariant)
		})
	}
}

func TestTheCheckLooksAtItsOwnShardOnly(t *testing.T) {
	b := damagedBed(t)
	k := b.orders()
	k.Owner.Shard = 2
	b.must(b.apply(func(c *op.Ctx) error {
		identities.Put(c.Tx, idKey{k, "x"}, &identity{Position: 1})
		return nil
	}))
	b.check()
}
