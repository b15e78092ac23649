package group

import (
	"bytes"
	"fmt"

	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// auditor verifies the groups of one shard: every row belongs to a group, every
// head is what a scan of its rows counts, leases and rows say the same. The indexes
// of ready and waiting places, of ordering keys and of run ends follow from the
// window and the dead letters.
type auditor struct {
	*op.Audit
	groups   map[ref]*tally
	order    []ref // as they were met
	removing map[ref]*removal
	scratch  []byte
}

// tally is what a scan counts for one group.
type tally struct {
	name      name
	def       *definition
	head      head // as stored
	counts    [states]int64
	dead      [states]int64
	deadBytes int64
	matched   int64
	runs      int64
	next      uint64 // the position that the next row must begin at
	afterRun  bool
	broken    bool            // the rows are not without gaps
	keys      map[string]bool // of the positions met so far
	wait, due int64
	lowest    [2]uint64 // of ready places
	lastBatch uint64
	skipped   uint64 // number of the last skip
	skips     uint64
	leased    op.Sum // places under leases, as their rows say
	leases    op.Sum // as the leases say
}

// check verifies the invariants of quality §1 that concern groups.
func check(a *op.Audit) error {
	x := &auditor{Audit: a, groups: map[ref]*tally{}, removing: map[ref]*removal{}}
	derives(x)
	for _, step := range []func() error{x.removals, x.definitions, x.heads, x.window, x.deadLetters, x.leases, x.skips, x.compare} {
		if err := step(); err != nil {
			return err
		}
	}
	dueRemovals(x)
	a.Count("groups", int64(len(x.order)))
	return nil
}

// derives declares the indexes. The window is verified by having no gaps and dead
// letters by their events, and both are counted by state; keys and instants of
// retries stand in them alone.
func derives(x *auditor) {
	for _, d := range []op.Derived{
		{Table: readies.Info(), Verified: true},
		{Table: waits.Info(), Subject: waitOf, Counted: true},
		{Table: keyed.Info(), Subject: keyedOf},
		{Table: runEnds.Info(), Verified: true},
	} {
		d.Skip = x.beingRemoved
		x.Derives(d)
	}
}

const refEnd = 1 + table.OwnerBytes + 8

// waitOf is the place that waits: the key without the instant.
func waitOf(dst, key, _ []byte) []byte {
	return append(append(dst, key[:min(refEnd, len(key))]...), key[min(refEnd+8, len(key)):]...)
}

// keyedOf is the position that has the ordering key.
func keyedOf(dst, key, _ []byte) []byte {
	return append(append(dst, key[:min(refEnd, len(key))]...), key[max(len(key)-8, min(refEnd, len(key))):]...)
}

func (x *auditor) definitions() error {
	return op.Each(x.Audit, &definitions, func(n name, def *definition) error {
		f := def.ref(n)
		t := &tally{name: n, def: def, afterRun: true}
		where := fmt.Sprintf("group %q of %s", n.Group, x.OwnerName(f.Owner))
		if x.removing[f] != nil {
			x.Report("removal", where, "the group is there, and its rows are being removed")
		}
		if x.groups[f] != nil {
			x.Report("index", where, "its number %d is that of another group", f.ID)
		}
		if !bytes.Equal(def.Fingerprint, fingerprintOf(&def.Wanted)) {
			x.Report("definition", where, "the definition is not the one that its fingerprint is of")
		}
		x.Past(where, "its creation", def.CreatedAt)
		x.Applied(where, "its creation", f.ID, 1)
		h, ok, err := heads.Get(x.R, f)
		if err != nil {
			return err
		}
		if !ok {
			x.Report("index", where, "the group has no head")
		}
		t.head, t.next = h, h.Checkpoint+1
		x.groups[f] = t
		x.order = append(x.order, f)
		x.ImplyDue(table.DueGroup, n.append(nil), h.Armed)
		return nil
	})
}

// heads belong to a group each.
func (x *auditor) heads() error {
	return op.Each(x.Audit, &heads, func(f ref, _ *head) error {
		if x.groups[f] == nil {
			x.Report("index", x.where(f), "a head belongs to no group")
		}
		return nil
	})
}

func (x *auditor) where(f ref) string {
	if t := x.groups[f]; t != nil {
		return fmt.Sprintf("group %q of %s", t.name.Group, x.OwnerName(f.Owner))
	}
	return fmt.Sprintf("group number %d of %s", f.ID, x.OwnerName(f.Owner))
}

// of finds the tally of a row's group; rows of a group that is not there are
// reported unless they are being removed.
func (x *auditor) of(f ref, id table.ID, key []byte) *tally {
	t := x.groups[f]
	if t == nil && !x.left(f, id, key) {
		x.Report("index", x.where(f), "a row of table %d belongs to no group", id)
	}
	return t
}

// window: rows begin after the checkpoint and leave no gap up to the issued
// position; runs touch neither each other nor the checkpoint.
func (x *auditor) window() error {
	return op.Each(x.Audit, &rows, func(k rowKey, r *row) error {
		t := x.groups[k.Ref]
		if t == nil {
			t = x.of(k.Ref, rows.ID, rows.Bytes(k))
		}
		if t == nil {
			return nil
		}
		last := k.Position
		if r.isRun() {
			last = r.End
			x.run(t, k, r)
		} else {
			t.counts[r.State]++
			t.matched++
			x.entry(t, k, place{true, k.Position}, &r.entry)
			x.inOrder(t, k, &r.entry)
			if err := ownKey(x, t, k, &r.entry); err != nil {
				return err
			}
		}
		if k.Position != t.next {
			x.Report("window", x.where(k.Ref), "a row stands at position %d where %d was due", k.Position, t.next)
			t.broken = true
		}
		t.next, t.afterRun = last+1, r.isRun()
		return nil
	})
}

func (x *auditor) run(t *tally, k rowKey, r *row) {
	t.runs++
	t.matched += int64(r.Matched)
	if t.afterRun {
		x.Report("window", x.where(k.Ref), "the gap run at %d touches the one before it, or the checkpoint", k.Position)
	}
	if r.End < k.Position || r.Matched > r.End-k.Position+1 {
		x.Report("window", x.where(k.Ref), "the gap run at %d ends at %d with %d matched positions", k.Position, r.End, r.Matched)
	}
	op.Imply(x.Audit, &runEnds, rowKey{k.Ref, r.End}, &runStart{k.Position})
}

// inOrder: of the unfinished positions of a key the first can be claimed, and all
// others wait for it.
func (x *auditor) inOrder(t *tally, k rowKey, e *entry) {
	older := e.Key != "" && t.keys[e.Key]
	if older != (e.State == blocked) {
		x.Report("order", x.where(k.Ref), "position %d is %s, and an older one of its key is unfinished: %t", k.Position, e.State.name(), older)
	}
	if e.Key == "" {
		return
	}
	if t.keys == nil {
		t.keys = map[string]bool{}
	}
	t.keys[e.Key] = true
	op.Imply(x.Audit, &keyed, orderKey{k.Ref, e.Key, k.Position}, &table.None{})
}

func (x *auditor) deadLetters() error {
	return op.Each(x.Audit, &deadLetters, func(k rowKey, dl *deadLetter) error {
		t := x.of(k.Ref, deadLetters.ID, deadLetters.Bytes(k))
		if t == nil {
			return nil
		}
		where := x.where(k.Ref)
		t.dead[dl.State]++
		t.deadBytes += int64(len(dl.Event))
		if dl.State == finished || dl.State == blocked || dl.State == held || dl.Version == 0 || dl.Key != "" {
			x.Report("state", where, "the dead letter at %d is %s, in version %d", k.Position, dl.State.name(), dl.Version)
		}
		x.Past(where, "the end of a dead letter's attempts", dl.At)
		x.entry(t, k, place{false, k.Position}, &dl.entry)
		same, err := source.Holds(&x.Scope, t.name.Source, k.Position, dl.Event)
		if err == nil && !same {
			x.Report("body", where, "the event of the dead letter at %d is not the one at this position of the source", k.Position)
		}
		return err
	})
}

// entry says which index row a place has, and verifies what its state asks for.
func (x *auditor) entry(t *tally, k rowKey, p place, e *entry) {
	where, claims := func() string { return x.where(k.Ref) }, e.Attempts
	if x.Future(e.IssuedAt, e.First) {
		x.Past(where(), "a first delivery or a lease", max(e.IssuedAt, e.First))
	}
	switch e.State {
	case ready:
		kind := kindOf(p)
		if t.lowest[kind] == 0 {
			t.lowest[kind] = p.Position
		}
		op.Imply(x.Audit, &readies, readyKey{k.Ref, p}, &table.None{})
	case waiting:
		if e.NotBefore == 0 {
			x.Report("state", where(), "position %d waits for nothing", p.Position)
		}
		t.wait = leasing.Earlier(t.wait, e.NotBefore)
		op.Imply(x.Audit, &waits, timeKey{k.Ref, e.NotBefore, p.code()}, &table.None{})
	case leased:
		claims--
		if e.Until == 0 || e.Batch == 0 {
			x.Report("lease", where(), "the lease of position %d has no deadline or number", p.Position)
		}
		t.due = leasing.Earlier(t.due, e.Until)
		t.lastBatch = max(t.lastBatch, e.Batch)
		t.leased.Add(x.listing(e.Until, e.Batch, p.code()))
	}
	if claims != e.Failures+e.LeaseLosses || e.State == blocked && e.Attempts != 0 {
		x.Report("state", where(), "position %d was claimed %d times and is %s, with %d failures and %d leases lost", p.Position, e.Attempts, e.State.name(), e.Failures, e.LeaseLosses)
	}
}

// leases compares lease rows with the places under them.
func (x *auditor) leases() error {
	return op.Each(x.Audit, &leases, func(k timeKey, l *lease) error {
		t := x.of(k.Ref, leases.ID, leases.Bytes(k))
		if t == nil {
			return nil
		}
		t.lastBatch = max(t.lastBatch, k.Seq)
		for _, c := range l.Places {
			t.leases.Add(x.listing(k.When, k.Seq, c))
		}
		return nil
	})
}
