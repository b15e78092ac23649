package group

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// busy is a group with a position in every state, runs, dead letters in every
// state, and skips.
func busy(t *testing.T) *bed {
	b := newBed(t, api.GroupPolicy{Ordered: api.OrderPerKey, DeadLetter: api.GroupDeadLetters{MaxEvents: 4}})
	b.publish(keyedEvent("x"), keyedEvent("x"), keyedEvent("y"))
	b.fill(20)
	d := b.receive(20).Deliveries // all but 2, which is blocked
	at := func(p uint64) api.GroupDelivery {
		return d[slices.IndexFunc(d, func(x api.GroupDelivery) bool { return x.Event.Position == p })]
	}
	for p := uint64(4); p <= 7; p++ {
		b.terminal(at(p))
	}
	b.terminal(at(8)) // held: there is no more room
	b.nack(at(9), 60_000)
	b.did(api.CompleteItem{Token: at(10).Token, Action: api.ActionRelease})
	b.ack(at(12), at(13), at(16))
	b.must(b.skip(18))
	for p := uint64(4); p <= 6; p++ {
		b.must(second(b.redrive(p, 0)))
	}
	again := b.receive(2).Deliveries // dead letters 4 and 5; 6 is ready
	b.nack(again[1], 90_000)
	b.check()
	return b
}

// unsound says that the check finds something, or names a damaged row.
func (b *bed) unsound() bool {
	b.t.Helper()
	snap := b.store.NewSnapshot()
	defer snap.Close()
	a := op.NewAudit(b.scope(snap), b.registry.Resources())
	b.must(a.Run())
	return len(a.Findings) > 0
}

func TestTheCheckFindsEverySingleMissingRow(t *testing.T) {
	b := busy(t)
	all := b.rows()
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if id := table.ID(k[0]); id < table.GroupDefinition && id != table.Due || id == table.GroupSkip {
			continue
		}
		b.write(func(c *op.Ctx) error { c.Tx.Delete([]byte(k)); return nil })
		if !b.unsound() {
			t.Errorf("the check does not miss the row of table %d at %x", k[0], k[1:])
		}
		b.write(func(c *op.Ctx) error { c.Tx.Put([]byte(k), []byte(all[k])); return nil })
	}
	b.same("the test", all)
}

func TestTheCheckFindsARowThatIsNotWhatItShouldBe(t *testing.T) {
	b := busy(t)
	all := b.rows()
	var f ref
	b.must(b.view(func(v *op.View) error {
		_, n, def, err := look(&v.Scope, b.ref("g"))
		f = def.ref(n)
		return err
	}))
	edit := func(p uint64, change func(r *row)) func(c *op.Ctx) error {
		return func(c *op.Ctx) error {
			r, ok, err := rows.Get(c.Tx, rowKey{f, p})
			if !ok || err != nil {
				return fmt.Errorf("no row at %d: %w", p, err)
			}
			change(&r)
			rows.Put(c.Tx, rowKey{f, p}, &r)
			return nil
		}
	}
	top := func(change func(h *head)) func(c *op.Ctx) error {
		return func(c *op.Ctx) error {
			h, _, err := heads.Get(c.Tx, f)
			change(&h)
			heads.Put(c.Tx, f, &h)
			return err
		}
	}
	for what, damage := range map[string]func(c *op.Ctx) error{
		"a run that is too long":          edit(12, func(r *row) { r.End++ }),
		"a run that matched too little":   edit(12, func(r *row) { r.Matched-- }),
		"a run that matched too much":     edit(12, func(r *row) { r.Matched += 2 }),
		"a leased one that is said ready": edit(11, func(r *row) { r.entry = entry{State: ready} }),
		"another deadline":                edit(11, func(r *row) { r.Until++ }),
		"another lease":                   edit(11, func(r *row) { r.Batch++ }),
		"another retry instant":           edit(9, func(r *row) { r.NotBefore++ }),
		"another ordering key":            edit(2, func(r *row) { r.Key = "z" }),
		"a checkpoint further on":         top(func(h *head) { h.Checkpoint++ }),
		"an issued position beyond":       top(func(h *head) { h.Issued = 99 }),
		"a wrong count of leases":         top(func(h *head) { h.Counts[leased]++ }),
		"a wrong count of dead letters":   top(func(h *head) { h.DeadCounts[dead]-- }),
		"wrong bytes of dead letters":     top(func(h *head) { h.DeadBytes-- }),
		"a wrong count of runs":           top(func(h *head) { h.Runs++ }),
		"a wrong count of matches":        top(func(h *head) { h.Matched-- }),
		"a floor above a ready one":       top(func(h *head) { h.Floor[windowKind] = 11 }),
		"a bound after a retry":           top(func(h *head) { h.First.Wait += 60_000 }),
		"a bound after a lease":           top(func(h *head) { h.First.Lease += 60_000 }),
		"a lease number given already":    top(func(h *head) { h.Batch = 1 }),
		"armed too late":                  top(func(h *head) { h.Armed += 60_000 }),
		"not armed":                       top(func(h *head) { h.Armed = 0 }),
		"a stray ready entry": func(c *op.Ctx) error {
			readies.Put(c.Tx, readyKey{f, place{true, 11}}, &table.None{})
			return nil
		},
		"a stray row of another group": func(c *op.Ctx) error {
			rows.Put(c.Tx, rowKey{ref{f.Owner, 999}, 5}, &row{End: 5, Matched: 1})
			return nil
		},
		"the end of a run that names another start": func(c *op.Ctx) error {
			runEnds.Put(c.Tx, rowKey{f, 13}, &runStart{11})
			return nil
		},
		"the end of a run in its middle": func(c *op.Ctx) error {
			runEnds.Put(c.Tx, rowKey{f, 12}, &runStart{12})
			return nil
		},
		"runs that touch": func(c *op.Ctx) error {
			rows.Put(c.Tx, rowKey{f, 12}, &row{End: 12, Matched: 1})
			rows.Put(c.Tx, rowKey{f, 13}, &row{End: 13, Matched: 1})
			return nil
		},
		"a run at the checkpoint": func(c *op.Ctx) error {
			rows.Put(c.Tx, rowKey{f, 1}, &row{End: 1, Matched: 1})
			return nil
		},
	} {
		b.write(damage)
		if !b.unsound() {
			t.Errorf("the check does not see %s", what)
		}
		b.write(func(c *op.Ctx) error {
			for k := range b.rows() {
				if _, ok := all[k]; !ok {
					c.Tx.Delete([]byte(k))
				}
			}
			for k, v := range all {
				c.Tx.Put([]byte(k), []byte(v))
			}
			return nil
		})
	}
	b.check()
}

// stops applies a command, which must stop the shard at a damaged row, and goes
// on from what the store holds.
func (b *bed) stops(o *api.Operation, req api.CommandRequest) error {
	b.t.Helper()
	api.ApplyDefaults(req)
	req.SetCommandID(b.id())
	cmd := b.command(o, req)
	_, _, _, err := b.m.Apply(&machine.Entry{At: b.now, Seed: b.seed, Epoch: 1, Commands: []machine.Command{cmd}})
	b.must(b.m.Close())
	b.machine()
	return err
}

func TestCase007_ARowAtOrBelowTheCheckpointStopsTheShardInsteadOfTheGroup(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(6)
	d := b.receive(6).Deliveries
	b.ack(d[0], d[1], d[3])
	b.looks(2, 6, "3* [4-4] 5* 6*")
	var f ref
	b.must(b.view(func(v *op.View) error {
		_, n, def, err := look(&v.Scope, b.ref("g"))
		f = def.ref(n)
		return err
	}))
	stale := rowKey{f, 2}
	b.write(func(c *op.Ctx) error {
		rows.Put(c.Tx, stale, &row{End: 2, Matched: 1})
		return nil
	})
	findings, _ := b.audit()
	if !slices.ContainsFunc(findings, func(f op.Finding) bool { return f.Invariant == "window" }) {
		t.Errorf("the check finds %v", findings)
	}
	err := b.stops(api.SubscriptionsSeek.Operation, &api.SubscriptionsSeekRequest{Group: b.ref("g"), ExpectedGeneration: 1, To: api.SeekNow})
	var damage *table.Damage
	if !errors.As(err, &damage) || !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(damage.Error(), fmt.Sprintf("%x", rows.Bytes(stale))) {
		t.Errorf("a seek over it: %v", err)
	}
	b.write(func(c *op.Ctx) error { rows.Delete(c.Tx, stale); return nil })
	b.ack(d[2])
	b.looks(4, 6, "5* 6*")
}

func TestAWindowWithARowTooManyIsNeitherDroppedNorMoved(t *testing.T) {
	for what, damage := range map[string]func(c *op.Ctx, f ref){
		"a row beyond the issued position": func(c *op.Ctx, f ref) { rows.Put(c.Tx, rowKey{f, 4}, &row{entry: entry{State: held}}) },
		"a run that touches another":       func(c *op.Ctx, f ref) { rows.Put(c.Tx, rowKey{f, 2}, &row{End: 2, Matched: 1}) },
		"a missing row":                    func(c *op.Ctx, f ref) { rows.Delete(c.Tx, rowKey{f, 1}) },
	} {
		b := newBed(t, api.GroupPolicy{})
		b.fill(4)
		b.ack(b.receive(3).Deliveries[2])
		b.pause()
		var f ref
		b.must(b.view(func(v *op.View) error {
			_, n, def, err := look(&v.Scope, b.ref("g"))
			f = def.ref(n)
			return err
		}))
		b.write(func(c *op.Ctx) error { damage(c, f); return nil })
		b.broken = true
		before := b.rows()
		for _, err := range []error{
			b.stops(api.SubscriptionsConfigure.Operation, &api.SubscriptionsConfigureRequest{Group: b.ref("g"), Definition: defined(typed("a")), ExpectedGeneration: 1}),
			b.stops(api.SubscriptionsSeek.Operation, &api.SubscriptionsSeekRequest{Group: b.ref("g"), ExpectedGeneration: 1, To: api.SeekNow}),
		} {
			if !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("%s: %v", what, err)
			}
		}
		b.same(what, before)
	}
}

func TestADeletedTopicTakesItsGroupsWithItInBoundedSteps(t *testing.T) {
	for _, budget := range []int{1, 3, 1000} {
		b := busy(t)
		b.create("other", api.GroupDefinition{})
		streams := api.GroupRef{Source: b.stream("s"), Group: "g"}
		_, err := call(b, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{CommandID: b.id(), Group: streams, Definition: defined(api.GroupDefinition{})})
		b.must(err)
		owner := b.key().Owner
		for range 1000 {
			n := 0
			b.write(func(c *op.Ctx) (err error) { n, err = purge(c, owner, budget); return err })
			if n > budget {
				t.Fatalf("%d rows in a step of %d", n, budget)
			}
			if n < budget {
				break
			}
		}
		if left := b.own(); left != 2 { // definition and head of the stream's group
			t.Errorf("in steps of %d: %d rows are left", budget, left)
		}
		b.check()
	}
}
