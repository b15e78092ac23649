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
	followed, err := g.joinNext(&s)
	if err != nil {
		return err
	}
	if s.From == h.Checkpoint+1 {
		if followed {
			runEnds.Delete(g.c.Tx, rowKey{g.ref, s.To})
		}
		h.Checkpoint = s.To
		h.Matched -= int64(s.Matched)
		h.PassedBelow += s.To - s.From + 1 - s.Matched
		return nil
	}
	if err := g.joinLast(&s); err != nil {
		return err
	}
	h.Runs++
	rows.Put(g.c.Tx, rowKey{g.ref, s.From}, &row{End: s.To, Matched: s.Matched})
	runEnds.Put(g.c.Tx, rowKey{g.ref, s.To}, &runStart{s.From})
	return nil
}

// joinNext takes the run that follows a stretch into it. The end of that run is
// the stretch's then: insert writes it anew or deletes it.
func (g *group) joinNext(s *stretch) (followed bool, err error) {
	if g.head.Runs == 0 {
		return false, nil
	}
	k := rowKey{g.ref, s.To + 1}
	r, ok, err := rows.Get(g.c.Tx, k)
	if err != nil || !ok || !r.isRun() {
		return false, err
	}
	rows.Delete(g.c.Tx, k)
	g.head.Runs--
	s.To = r.End
	s.Matched += r.Matched
	return true, nil
}

// joinLast does so with the run that ends before a stretch. insert writes its row,
// with the first position of both, anew.
func (g *group) joinLast(s *stretch) error {
	if g.head.Runs == 0 {
		return nil
	}
	end := rowKey{g.ref, s.From - 1}
	start, ok, err := runEnds.Get(g.c.Tx, end)
	if err != nil || !ok {
		return err
	}
	k := rowKey{g.ref, start.Position}
	r, ok, err := rows.Get(g.c.Tx, k)
	if err == nil && (!ok || !r.isRun() || r.End != end.Position) {
		err = windowDamage(k)
	}
	if err != nil {
		return err
	}
	runEnds.Delete(g.c.Tx, end)
	g.head.Runs--
	s.From = start.Position
	s.Matched += r.Matched
	return nil
}

// first is the first row of the window: the lowest unfinished position, which
// follows the checkpoint. ok is false when the window is empty.
func first(s *op.Scope, f ref, h *head) (position uint64, e entry, ok bool, err error) {
	if h.rows() == 0 {
		return 0, e, false, nil
	}
	k := rowKey{f, h.Checkpoint + 1}
	r, ok, err := rows.Get(s.R, k)
	if err == nil && (!ok || r.isRun()) {
		err = windowDamage(k)
	}
	return k.Position, r.entry, ok, err
}

// eachRow calls fn for the rows of the window in order until it says stop. Each
// row tells where the next one is, so nothing is walked over that was deleted.
func eachRow(s *op.Scope, f ref, h *head, fn func(position uint64, r *row) (more bool)) error {
	for at := h.Checkpoint + 1; at <= h.Issued; {
		k := rowKey{f, at}
		r, ok, err := rows.Get(s.R, k)
		if err == nil && (!ok || r.isRun() && r.End < at) {
			err = windowDamage(k)
		}
		if err != nil {
			return err
		}
		if !fn(at, &r) {
			return nil
		}
		if at++; r.isRun() {
			at = r.End + 1
		}
	}
	return nil
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
