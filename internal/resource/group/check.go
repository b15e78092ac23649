package group

import (
	"fmt"

	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// auditor verifies the groups of one shard: every row belongs to a group, every
// head is what a full scan of its rows counts, every index entry has its row and
// the other way round.
type auditor struct {
	*op.Audit
	groups   map[ref]*tally
	order    []ref        // as they were met
	removing map[ref]bool // deleted groups that may have rows left
}

// tally is what a scan counts for one group.
type tally struct {
	name       name
	def        *definition
	head       head // as stored
	counts     [states]int64
	dead       [states]int64
	deadBytes  int64
	matched    int64
	runs       int64
	runEnds    int64
	next       uint64 // the position that the next row must begin at
	afterRun   bool
	broken     bool // the rows are not without gaps
	wait, due  int64
	ready      [2]int64
	lowest     [2]uint64
	lastBatch  uint64
	keyedRows  int64
	keysWanted int64
}

// check verifies the invariants of quality §1 that concern groups.
func check(a *op.Audit) error {
	x := &auditor{Audit: a, groups: map[ref]*tally{}, removing: map[ref]bool{}}
	for _, step := range []func() error{x.definitions, x.removals, x.window, x.deadLetters, x.readies, x.waits, x.leases, x.keyed, x.runEnds, x.strays, x.compare} {
		if err := step(); err != nil {
			return err
		}
	}
	a.Count("groups", int64(len(x.order)))
	return nil
}

func (x *auditor) definitions() error {
	return definitions.Scan(x.R, shardRange(x.Space.Shard), func(n name, def *definition) (bool, error) {
		f := def.ref(n)
		t := &tally{name: n, def: def, afterRun: true}
		h, ok, err := heads.Get(x.R, f)
		if err != nil {
			return false, err
		}
		if !ok {
			x.Report("index", x.where(f), "group %q has no head", n.Group)
		}
		t.head, t.next = h, h.Checkpoint+1
		x.groups[f] = t
		x.order = append(x.order, f)
		return true, nil
	})
}

func (x *auditor) where(f ref) string {
	if t := x.groups[f]; t != nil {
		return fmt.Sprintf("group %q of resource %d in %x", t.name.Group, f.Owner.Resource, f.Owner.Partition[:4])
	}
	return fmt.Sprintf("group number %d of resource %d in %x", f.ID, f.Owner.Resource, f.Owner.Partition[:4])
}

// of finds the tally of a row's group; rows of a group that is not there are
// reported unless they, or its resource, are being removed.
func (x *auditor) of(f ref, what string) *tally {
	t := x.groups[f]
	if t == nil && !x.removing[f] {
		x.stray(f, what)
	}
	return t
}

// stray reports a row of a group that is not there, unless its resource is being
// deleted.
func (x *auditor) stray(f ref, what string) {
	if res, err := directory.ByID(x.R, f.Owner.Shard, f.Owner.Resource); err != nil || res != nil {
		x.Report("index", x.where(f), "a %s row belongs to no group", what)
	}
}

// window: rows begin after the checkpoint and leave no gap up to the issued
// position; runs touch neither each other nor the checkpoint.
func (x *auditor) window() error {
	return rows.Scan(x.R, shardRange(x.Space.Shard), func(k rowKey, r *row) (bool, error) {
		t := x.of(k.Ref, rows.Name)
		if t == nil {
			return true, nil
		}
		last := k.Position
		if r.isRun() {
			last = r.End
			t.runs++
			t.matched += int64(r.Matched)
			if t.afterRun {
				x.Report("window", x.where(k.Ref), "the gap run at %d touches the one before it, or the checkpoint", k.Position)
			}
			if r.End < k.Position || r.Matched > r.End-k.Position+1 {
				x.Report("window", x.where(k.Ref), "the gap run at %d ends at %d with %d matched positions", k.Position, r.End, r.Matched)
			}
		} else {
			t.counts[r.State]++
			t.matched++
			if r.Key != "" {
				t.keysWanted++
			}
		}
		if k.Position != t.next {
			x.Report("window", x.where(k.Ref), "a row stands at position %d where %d was due", k.Position, t.next)
			t.broken = true
		}
		t.next, t.afterRun = last+1, r.isRun()
		return true, x.indexed(k, place{true, k.Position}, &r.entry)
	})
}

func (x *auditor) deadLetters() error {
	return deadLetters.Scan(x.R, shardRange(x.Space.Shard), func(k rowKey, dl *deadLetter) (bool, error) {
		t := x.of(k.Ref, deadLetters.Name)
		if t == nil {
			return true, nil
		}
		t.dead[dl.State]++
		t.deadBytes += int64(len(dl.Event))
		if dl.State == finished || dl.State == blocked || dl.State == held {
			x.Report("state", x.where(k.Ref), "the dead letter at %d is %s", k.Position, dl.State.name())
		}
		if _, err := source.DecodeRecord(dl.Event); err != nil {
			x.Report("body", x.where(k.Ref), "the event of the dead letter at %d cannot be read", k.Position)
		}
		return true, x.indexed(k, place{false, k.Position}, &dl.entry)
	})
}

// indexed: a place has the index entry of its state.
func (x *auditor) indexed(k rowKey, p place, e *entry) error {
	ok, err := true, error(nil)
	switch e.State {
	case ready:
		ok, err = readies.Has(x.R, readyKey{k.Ref, p})
	case waiting:
		ok, err = waits.Has(x.R, timeKey{k.Ref, e.NotBefore, p.code()})
	case leased:
		var l lease
		if l, ok, err = leases.Get(x.R, timeKey{k.Ref, e.Until, e.Batch}); ok {
			ok = lists(&l, p)
		}
	}
	if err == nil && ok && p.Window && e.Key != "" {
		ok, err = keyed.Has(x.R, orderKey{k.Ref, e.Key, p.Position})
	}
	if err == nil && !ok {
		x.Report("index", x.where(k.Ref), "position %d is %s and not in the index of that state", p.Position, e.State.name())
	}
	return err
}

func lists(l *lease, p place) bool {
	for _, c := range l.Places {
		if c == p.code() {
			return true
		}
	}
	return false
}

// points: an index entry names a place in its state.
func (x *auditor) points(f ref, p place, s state, holds func(*entry) bool) error {
	var e *entry
	if p.Window {
		r, ok, err := rows.Get(x.R, rowKey{f, p.Position})
		if err != nil {
			return err
		}
		if ok {
			e = &r.entry
		}
	} else {
		dl, ok, err := deadLetters.Get(x.R, rowKey{f, p.Position})
		if err != nil {
			return err
		}
		if ok {
			e = &dl.entry
		}
	}
	if e == nil || e.State != s || !holds(e) {
		x.Report("index", x.where(f), "the index of %s positions names %d, which is not", s.name(), p.Position)
	}
	return nil
}

func (x *auditor) readies() error {
	return readies.Scan(x.R, shardRange(x.Space.Shard), func(k readyKey, _ *table.None) (bool, error) {
		t := x.of(k.Ref, readies.Name)
		if t == nil {
			return true, nil
		}
		kind := kindOf(k.Place)
		if t.ready[kind] == 0 {
			t.lowest[kind] = k.Place.Position
		}
		t.ready[kind]++
		return true, x.points(k.Ref, k.Place, ready, func(*entry) bool { return true })
	})
}

func (x *auditor) waits() error {
	return waits.Scan(x.R, shardRange(x.Space.Shard), func(k timeKey, _ *table.None) (bool, error) {
		t := x.of(k.Ref, waits.Name)
		if t == nil {
			return true, nil
		}
		t.wait = leasing.Earlier(t.wait, k.When)
		return true, x.points(k.Ref, placeOf(k.Seq), waiting, func(e *entry) bool { return e.NotBefore == k.When })
	})
}

func (x *auditor) leases() error {
	return leases.Scan(x.R, shardRange(x.Space.Shard), func(k timeKey, l *lease) (bool, error) {
		t := x.of(k.Ref, leases.Name)
		if t == nil {
			return true, nil
		}
		t.due = leasing.Earlier(t.due, k.When)
		t.lastBatch = max(t.lastBatch, k.Seq)
		for _, c := range l.Places {
			if err := x.points(k.Ref, placeOf(c), leased, func(e *entry) bool { return e.Until == k.When && e.Batch == k.Seq }); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

func (x *auditor) keyed() error {
	return keyed.Scan(x.R, shardRange(x.Space.Shard), func(k orderKey, _ *table.None) (bool, error) {
		t := x.of(k.Ref, keyed.Name)
		if t == nil {
			return true, nil
		}
		t.keyedRows++
		r, ok, err := rows.Get(x.R, rowKey{k.Ref, k.Position})
		if err == nil && (!ok || r.isRun() || r.Key != k.Key) {
			x.Report("index", x.where(k.Ref), "the order of a key names %d, which is finished or of another key", k.Position)
		}
		return true, err
	})
}

func (x *auditor) runEnds() error {
	return runEnds.Scan(x.R, shardRange(x.Space.Shard), func(k rowKey, start *runStart) (bool, error) {
		t := x.of(k.Ref, runEnds.Name)
		if t == nil {
			return true, nil
		}
		t.runEnds++
		r, ok, err := rows.Get(x.R, rowKey{k.Ref, start.Position})
		if err == nil && (!ok || !r.isRun() || r.End != k.Position) {
			x.Report("index", x.where(k.Ref), "the end of a gap run at %d names %d, where none with that end begins", k.Position, start.Position)
		}
		return true, err
	})
}
