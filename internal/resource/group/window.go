package group

import (
	"slices"

	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// The window is what lies between the checkpoint and the issued position:
//
//	source   1 2 3 4 5 6 7 8 9 10 11 12 13 …
//	finished ■ ■ ■ · ■ ■ · ■ ■ ■  ·  ·       checkpoint = 3, issued = 12
//	rows           4 [5-6] 7 [8-10] 11 12
//
// Every position of it is in exactly one row. Runs never touch each other or the
// checkpoint, so the first row is always an unfinished position, and there are at
// most as many runs as unfinished positions.

// stretch is adjacent positions that a command finished, and how many of them
// the filter matched.
type stretch struct{ From, To, Matched uint64 }

// finish takes a position out of the window as finished. Its row and its index
// entries go now, the run it joins is written by fold.
func (g *group) finish(position uint64, e *entry) error {
	if err := g.leave(place{true, position}, e); err != nil {
		return err
	}
	rows.Delete(g.c.Tx, rowKey{g.ref, position})
	g.done = append(g.done, stretch{position, position, 1})
	return unblock(g, position, e.Key)
}

// pass notes positions that the filter does not match.
func (g *group) pass(from, to uint64) {
	g.done = append(g.done, stretch{from, to, 0})
	g.head.Totals.PassedOver += int64(to - from + 1)
}

// fold brings the window and the checkpoint up to date with what the command
// finished. Its work follows the number of separate stretches, not their span.
func (g *group) fold() error {
	for _, s := range join(g.done) {
		if err := g.insert(s); err != nil {
			return err
		}
	}
	g.done = nil
	return nil
}

// join puts stretches in order and joins those that are adjacent.
func join(all []stretch) []stretch {
	slices.SortFunc(all, func(a, b stretch) int {
		if a.From < b.From {
			return -1
		}
		return 1
	})
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && out[n-1].To+1 == s.From {
			out[n-1].To = s.To
			out[n-1].Matched += s.Matched
			continue
		}
		out = append(out, s)
	}
	return out
}

// insert adds a stretch to the window: to the checkpoint when it follows it, else
// to its neighbours.
func (g *group) insert(s stretch) error {
	h := &g.head
	next, err := g.runAt(s.To + 1)
	if err != nil {
		return err
	}
	if next != nil {
		rows.Delete(g.c.Tx, rowKey{g.ref, s.To + 1})
		h.Runs--
		s.To = next.End
		s.Matched += next.Matched
	}
	if s.From == h.Checkpoint+1 {
		h.Checkpoint = s.To
		h.Matched -= int64(s.Matched)
		h.PassedBelow += s.To - s.From + 1 - s.Matched
		return nil
	}
	from, run, err := g.runBefore(s.From)
	if err != nil {
		return err
	}
	if run != nil && run.End+1 == s.From {
		s.From = from
		s.Matched += run.Matched
	} else {
		h.Runs++
	}
	rows.Put(g.c.Tx, rowKey{g.ref, s.From}, &row{End: s.To, Matched: s.Matched})
	return nil
}

// runAt is the run that begins at a position; nil when none does.
func (g *group) runAt(position uint64) (*row, error) {
	if g.head.Runs == 0 {
		return nil, nil
	}
	r, ok, err := rows.Get(g.c.Tx, rowKey{g.ref, position})
	if err != nil || !ok || !r.isRun() {
		return nil, err
	}
	return &r, nil
}

// runBefore is the last row before a position if that is a run.
func (g *group) runBefore(position uint64) (from uint64, run *row, err error) {
	if g.head.Runs == 0 {
		return 0, nil, nil
	}
	return lastBefore(&g.c.Scope, g.ref, position)
}

func lastBefore(s *op.Scope, f ref, position uint64) (from uint64, run *row, err error) {
	rg := table.Range{Prefix: f.append(nil), From: appendRow(nil, rowKey{f, position}), Reverse: true}
	err = rows.Scan(s.R, rg, func(k rowKey, r *row) (bool, error) {
		if r.isRun() {
			from, run = k.Position, r
		}
		return false, nil
	})
	return from, run, err
}

// first is the first row of the window: the lowest unfinished position. ok is
// false when the window is empty.
func first(s *op.Scope, f ref, h *head) (position uint64, e entry, ok bool, err error) {
	if h.rows() == 0 {
		return 0, e, false, nil
	}
	from := appendRow(nil, rowKey{f, h.Checkpoint + 1})
	err = rows.Scan(s.R, table.Range{Prefix: f.append(nil), From: from}, func(k rowKey, r *row) (bool, error) {
		if r.isRun() {
			return false, windowDamage(k)
		}
		position, e, ok = k.Position, r.entry, true
		return false, nil
	})
	if err == nil && !ok {
		err = windowDamage(rowKey{f, h.Checkpoint + 1})
	}
	return position, e, ok, err
}

func windowDamage(k rowKey) error {
	return &table.Damage{Table: rows.Name, Key: rows.Bytes(k), Cause: errWindow}
}

// find reads an unfinished position of the window; nil when it is not there.
func (g *group) find(position uint64) (*entry, error) {
	r, ok, err := rows.Get(g.c.Tx, rowKey{g.ref, position})
	if err != nil || !ok || r.isRun() {
		return nil, err
	}
	if position <= g.head.Checkpoint {
		return nil, windowDamage(rowKey{g.ref, position})
	}
	return &r.entry, nil
}
