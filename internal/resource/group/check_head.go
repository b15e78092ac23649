package group

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/resource/source"
)

// listing is one place under a lease, as its row and the lease say it.
func (x *auditor) listing(until int64, batch, code uint64) []byte {
	x.scratch = codec.AppendUint64(codec.AppendUint64(codec.AppendInt64(x.scratch[:0], until), batch), code)
	return x.scratch
}

// skips: the last ones are there, without gaps.
func (x *auditor) skips() error {
	return op.Each(x.Audit, &skips, func(k rowKey, s *skip) error {
		t := x.groups[k.Ref]
		if t == nil {
			x.Report("index", x.where(k.Ref), "a skip belongs to no group")
			return nil
		}
		if t.skips > 0 && k.Position != t.skipped+1 || k.Position < firstSkip(&t.head) {
			x.Report("skips", x.where(k.Ref), "skip %d follows skip %d", k.Position, t.skipped)
		}
		t.skips, t.skipped = t.skips+1, k.Position
		if s.Position == 0 {
			x.Report("skips", x.where(k.Ref), "skip %d is of no position", k.Position)
		}
		x.Past(x.where(k.Ref), "a skip", s.At)
		return nil
	})
}

// compare verifies every head with the tally of its rows.
func (x *auditor) compare() error {
	for _, f := range x.order {
		t := x.groups[f]
		x.counters(f, t)
		if err := x.bounds(f, t); err != nil {
			return err
		}
		x.armed(f, t)
		if t.leased != t.leases {
			if err := x.explain(f, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *auditor) counters(f ref, t *tally) {
	h, where := &t.head, x.where(f)
	same := func(what string, claimed, counted int64) {
		if claimed != counted {
			x.Report("counters", where, "%s: the head says %d, a scan counts %d", what, claimed, counted)
			op.Doubt(x.Audit, f.Owner)
		}
	}
	for s := ready; s < states; s++ {
		same(string(s.name()), h.Counts[s], t.counts[s])
		same("dead letters "+string(s.name()), h.DeadCounts[s], t.dead[s])
	}
	same("dead letter bytes", h.DeadBytes, t.deadBytes)
	same("matched positions", h.Matched, t.matched)
	same("gap runs", h.Runs, t.runs)
	same("skips", int64(h.Skip-firstSkip(h)+1), int64(t.skips))
	same("skips of all time", h.Totals.Skipped, int64(h.Skip))
	for kind := range t.lowest {
		if t.lowest[kind] > 0 && t.lowest[kind] < h.Floor[kind] {
			x.Report("floor", where, "a ready entry stands at %d, below the floor %d", t.lowest[kind], h.Floor[kind])
		}
	}
	if t.lastBatch > h.Batch {
		x.Report("sequence", where, "a lease has number %d, above the head's %d", t.lastBatch, h.Batch)
	}
	if h.Generation < t.def.ID || h.Epoch < t.def.ID {
		x.Report("sequence", where, "generation %d and epoch %d are not above the group's number %d", h.Generation, h.Epoch, t.def.ID)
	}
	failed := h.FailureCode != "" && h.FailureCode != restored // a restore has no position
	if failed != (h.FailedPosition != 0) || h.FailureCode != "" && !h.Paused {
		x.Report("state", where, "it failed with %q at position %d, and is paused: %t", h.FailureCode, h.FailedPosition, h.Paused)
	}
}

// bounds: first − 1 ≤ checkpoint ≤ issued ≤ tail, the window reaches exactly to
// the issued position, and it holds no more than maxWindow.
func (x *auditor) bounds(f ref, t *tally) error {
	h, where := &t.head, x.where(f)
	src, err := source.Look(&x.Scope, t.name.Source)
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

// armed: the head's lower bounds hold, and the group is armed early enough.
func (x *auditor) armed(f ref, t *tally) {
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
}

// explain looks for the places that rows and leases say different things of.
func (x *auditor) explain(f ref, t *tally) error {
	told, under := false, shardRange(f.Owner.Shard)
	under.Prefix = f.append(nil)
	held := func(p place, e *entry) error {
		if e.State != leased {
			return nil
		}
		l, ok, err := leases.Get(x.R, timeKey{f, e.Until, e.Batch})
		if err == nil && (!ok || !lists(&l, p)) {
			told = true
			x.Report("lease", x.where(f), "position %d is leased, and its lease is not there or does not list it", p.Position)
		}
		return err
	}
	err := rows.Scan(x.R, under, func(k rowKey, r *row) (bool, error) { return true, held(place{true, k.Position}, &r.entry) })
	if err == nil {
		err = deadLetters.Scan(x.R, under, func(k rowKey, dl *deadLetter) (bool, error) {
			return true, held(place{false, k.Position}, &dl.entry)
		})
	}
	if err == nil && !told {
		x.Report("lease", x.where(f), "leases list %d places, and %d are leased", t.leases.Things(), t.leased.Things())
	}
	return x.Survive(err)
}

func lists(l *lease, p place) bool {
	for _, c := range l.Places {
		if c == p.code() {
			return true
		}
	}
	return false
}
