package group

import (
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// compare verifies every head with the tally of its rows.
func (x *auditor) compare() error {
	for _, f := range x.order {
		t := x.groups[f]
		x.counters(f, t)
		if err := x.bounds(f, t); err != nil {
			return err
		}
		if err := x.armed(f, t); err != nil {
			return err
		}
	}
	return nil
}

func (x *auditor) counters(f ref, t *tally) {
	h, where := &t.head, x.where(f)
	same := func(what string, claimed, counted int64) {
		if claimed != counted {
			x.Report("counters", where, "%s: the head says %d, a scan counts %d", what, claimed, counted)
		}
	}
	for s := ready; s < states; s++ {
		same(string(s.name()), h.Counts[s], t.counts[s])
		same("dead letters "+string(s.name()), h.DeadCounts[s], t.dead[s])
	}
	same("dead letter bytes", h.DeadBytes, t.deadBytes)
	same("matched positions", h.Matched, t.matched)
	same("gap runs", h.Runs, t.runs)
	same("ends of gap runs", h.Runs, t.runEnds)
	same("rows of the order of keys", t.keysWanted, t.keyedRows)
	same("ready entries", h.claimable(), t.ready[deadKind]+t.ready[windowKind])
	for kind := range t.ready {
		if t.ready[kind] > 0 && t.lowest[kind] < h.Floor[kind] {
			x.Report("floor", where, "a ready entry stands at %d, below the floor %d", t.lowest[kind], h.Floor[kind])
		}
	}
	if t.lastBatch > h.Batch {
		x.Report("sequence", where, "a lease has number %d, above the head's %d", t.lastBatch, h.Batch)
	}
}

// bounds: first − 1 ≤ checkpoint ≤ issued ≤ tail, the window reaches exactly to
// the issued position, and it holds no more than maxWindow.
func (x *auditor) bounds(f ref, t *tally) error {
	h, where := &t.head, x.where(f)
	scope := x.Scope
	src, err := source.Look(&scope, t.name.Source)
	if err != nil {
		return err
	}
	if h.Checkpoint+1 < src.First() || h.Checkpoint > h.Issued || h.Issued > src.Tail {
		x.Report("checkpoint", where, "first %d, checkpoint %d, issued %d, tail %d are not in order", src.First(), h.Checkpoint, h.Issued, src.Tail)
	}
	if !t.broken && t.next != h.Issued+1 {
		x.Report("window", where, "the window ends at %d and positions up to %d are issued", t.next-1, h.Issued)
	}
	if h.Matched > t.def.Wanted.Policy.MaxWindow {
		x.Report("window", where, "%d matched positions are above the checkpoint; maxWindow is %d", h.Matched, t.def.Wanted.Policy.MaxWindow)
	}
	return nil
}

// armed: the head's lower bounds hold, and the due row is there and early enough.
func (x *auditor) armed(f ref, t *tally) error {
	h, where := &t.head, x.where(f)
	bound := func(what string, claimed, actual int64) {
		if actual != 0 && (claimed == 0 || claimed > actual) {
			x.Report("bound", where, "the first %s is at %d; the head says not before %d", what, actual, claimed)
		}
	}
	bound("retry", h.First.Wait, t.wait)
	bound("lease", h.First.Lease, t.due)
	next := leasing.Earlier(t.wait, t.due)
	if next != 0 && (h.Armed == 0 || h.Armed > max(next, x.Now)) { // what a step left over is due from then on
		x.Report("due", where, "something is due at %d and the group is armed for %d", next, h.Armed)
	}
	if h.Armed == 0 {
		return nil
	}
	has, err := table.DueRows.Has(x.R, table.DueKey{Shard: f.Owner.Shard, When: h.Armed, Kind: table.DueGroup, Owner: string(t.name.append(nil))})
	if err == nil && !has {
		x.Report("due", where, "the group is armed for %d and has no due row", h.Armed)
	}
	return err
}
