package queue

import (
	"cmp"
	"maps"
	"slices"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// Finished rows list the messages that one command finished, in the order in which
// they are pruned. Messages say when they were finished and not which row lists
// them, so the rows of a lane are compared with its messages by sums. Only where
// that fails are the rows made anew, as close to what is stored as they can be:
// numbers are without gaps up to the head's, since pruning takes from the front.

// remember adds one finished message to a sum.
func remember(a *auditor, add func([]byte), when int64, s state, id string) {
	b := append(codec.AppendInt64(a.scratch[:0], when), byte(s))
	a.scratch = append(b, id...)
	add(a.scratch)
}

func (a *auditor) finished() error {
	return a.EachRaw(finisheds.Info(), func(key, value []byte) error {
		kr := codec.NewKeyReader(key[1:])
		k := readTime(&kr)
		if err := kr.End(); err != nil {
			return &table.Damage{Table: finisheds.Name, Key: append([]byte(nil), key...), Cause: err}
		}
		t := a.lane(k.Owner)
		if t.finished > 0 && k.Seq != t.lastFinish+1 {
			t.unordered = true
		}
		t.finished++
		t.lastFinish = k.Seq
		var v batch
		if decodeBatch(value, &v) != nil || !v.State.finished() || len(v.IDs) == 0 {
			t.unordered = true // whatever it lists is not told by the sum
			return nil
		}
		for _, id := range v.IDs {
			remember(a, t.remembered.rows.Add, k.When, v.State, id)
		}
		return nil
	})
}

// told says that the finished rows of the lane are what its messages say. Such rows
// stay as they are, also where their numbers are not the head's: the head is wrong
// then as well as they, and nothing that is made anew would tell it any more.
func (t *tally) told() bool { return t.remembered.equal() && !t.unordered }

// remembers passes over the finished rows of lanes where they are right as they
// are, or where it cannot be said which are not.
func (a *auditor) remembers(key, _ []byte) (bool, error) {
	kr := codec.NewKeyReader(key[1:])
	o := table.ReadOwner(&kr)
	return kr.Err() == nil && (a.lane(o).told() || a.lane(o).passed), nil
}

// disputed keeps the rows of a lane where they list what no message says, so that it
// may be the message that is lost or altered.
func (a *auditor) disputed(key, _, _ []byte) op.Weight {
	kr := codec.NewKeyReader(key[1:])
	o := table.ReadOwner(&kr)
	if kr.Err() == nil && a.lane(o).disputed {
		return op.Keep
	}
	return op.Weighed
}

// fate is what the messages of one finished row have in common.
type fate struct {
	when  int64
	state state
}

// ending is one finished message.
type ending struct {
	id  string
	seq uint64
}

// unlisted are finished messages that no row lists, in the order of enqueueing.
type unlisted map[fate][]ending

// take is the first of one fate; "" when there is none.
func (u unlisted) take(f fate) string {
	left := u[f]
	if len(left) == 0 {
		return ""
	}
	u[f] = left[1:]
	return left[0].id
}

// finishedRow is one row as it is stored, and as it will be.
type finishedRow struct {
	fate
	seq  uint64   // 0: to be given
	ids  []string // "" where the row lists something else
	lost bool     // nothing it lists is right
	open bool     // it cannot be read, so it may have listed any number
}

// again makes the finished rows of one lane anew.
func (a *auditor) again(t *tally) error {
	type end struct {
		fate
		seq uint64
	}
	ends, known := map[string]end{}, map[string]bool{}
	err := messages.Scan(a.R, table.Range{Prefix: t.owner.Append(nil)}, func(k messageKey, m *message) (bool, error) {
		if m.State.finished() {
			ends[k.ID] = end{fate{m.FinishedAt, m.State}, m.Seq}
			known[k.ID] = true
		}
		return true, nil
	})
	if err != nil {
		return a.Survive(err)
	}
	wrong, lost := false, false
	rows, err := a.storedRows(t, func(id string, f fate) bool {
		e, ok := ends[id]
		if ok = ok && e.fate == f; ok {
			delete(ends, id)
		}
		wrong, lost = wrong || !ok, lost || !known[id]
		return ok
	})
	if err != nil {
		return err
	}
	// A row may list the last that is known of a message, or when it did finish.
	t.disputed = lost || wrong && len(ends) > 0
	left := unlisted{}
	//keyload:sorted each list is sorted below
	for id, e := range ends {
		left[e.fate] = append(left[e.fate], ending{id, e.seq})
	}
	//keyload:sorted each list is sorted by itself
	for _, l := range left {
		slices.SortFunc(l, func(x, y ending) int { return cmp.Compare(x.seq, y.seq) })
	}
	rows = grow(fill(rows, left), left, t)
	number(rows, t)
	t.finished = int64(len(rows)) // as they will be
	for _, r := range rows {
		op.Imply(a.Audit, &finisheds, timeKey{t.owner, r.when, r.seq}, &batch{State: r.state, IDs: r.ids})
	}
	return nil
}

// storedRows reads the rows of a lane. right says that a message is what a row says
// of it, and that no row before has listed it.
func (a *auditor) storedRows(t *tally, right func(id string, f fate) bool) (rows []*finishedRow, err error) {
	prefix := t.owner.Append([]byte{byte(finisheds.ID)})
	err = a.R.Scan(prefix, codec.PrefixEnd(prefix), false, func(key, value []byte) (bool, error) {
		kr := codec.NewKeyReader(key[1:])
		k := readTime(&kr)
		if kr.End() != nil {
			return true, nil
		}
		var v batch
		r := &finishedRow{fate: fate{when: k.When}, seq: k.Seq, lost: true}
		rows = append(rows, r)
		if r.open = decodeBatch(value, &v) != nil; r.open {
			return true, nil
		}
		r.state, r.ids = v.State, v.IDs
		for i, id := range v.IDs {
			if right(id, r.fate) {
				r.lost = false
			} else {
				r.ids[i] = ""
			}
		}
		return true, nil
	})
	return rows, err
}

// fill puts messages that no row lists into the places of what rows list wrongly,
// and drops the rows that list nothing then.
func fill(rows []*finishedRow, left unlisted) []*finishedRow {
	out := rows[:0]
	for _, r := range rows {
		for _, s := range [...]state{acked, expired, cancelled} {
			if r.lost && len(left[r.fate]) == 0 {
				r.state = s
			}
		}
		ids := r.ids[:0:0]
		for _, id := range r.ids {
			if id == "" {
				id = left.take(r.fate)
			}
			if id != "" {
				ids = append(ids, id)
			}
		}
		for r.open && len(left[r.fate]) > 0 {
			ids = append(ids, left.take(r.fate))
		}
		if r.ids = ids; len(ids) > 0 {
			out = append(out, r)
		}
	}
	return out
}

// grow adds rows for what is left: as many as the head counts, if that can be.
// Where it counts no more, what is left joins the row of its fate.
func grow(rows []*finishedRow, left unlisted, t *tally) []*finishedRow {
	missing := 0
	if t.head != nil {
		missing = int(t.head.FinishedRows) - len(rows)
	}
	has := map[fate]*finishedRow{}
	for _, r := range rows {
		has[r.fate] = r
	}
	for _, f := range slices.SortedFunc(maps.Keys(left), func(x, y fate) int {
		return cmp.Or(cmp.Compare(x.when, y.when), cmp.Compare(x.state, y.state))
	}) {
		if len(left[f]) == 0 {
			continue
		}
		r := has[f]
		if r == nil || missing > 0 {
			r = &finishedRow{fate: f}
			rows = append(rows, r)
			missing--
		}
		for id := left.take(f); id != ""; id = left.take(f) {
			r.ids = append(r.ids, id)
		}
	}
	return split(rows, missing)
}

// split takes rows apart that were made anew, until there are as many as the head
// counts: which command finished which of the messages of one instant is lost.
func split(rows []*finishedRow, missing int) []*finishedRow {
	for i := 0; i < len(rows) && missing > 0; i++ {
		for r := rows[i]; r.seq == 0 && len(r.ids) > 1 && missing > 0; missing-- {
			last := len(r.ids) - 1
			rows = append(rows, &finishedRow{fate: r.fate, ids: []string{r.ids[last]}})
			r.ids = r.ids[:last]
		}
	}
	return rows
}

// number gives the rows their numbers: without gaps up to the head's, and rising
// with time. A row keeps the one it has where that can be.
func number(rows []*finishedRow, t *tally) {
	last := t.lastFinish
	if t.head != nil {
		last = max(t.head.FinishedSeq, uint64(len(rows))) // the first is 1 at least
	}
	first := last - uint64(len(rows)) + 1
	taken := map[uint64]bool{}
	for _, r := range rows {
		if r.seq < first || r.seq > last || taken[r.seq] {
			r.seq = 0
		}
		taken[r.seq] = true
	}
	slices.SortStableFunc(rows, func(x, y *finishedRow) int {
		return cmp.Or(cmp.Compare(x.when, y.when), cmp.Compare(x.seq-1, y.seq-1)) // those without one come last
	})
	next := first
	for _, r := range rows {
		for ; r.seq == 0; next++ {
			if !taken[next] {
				r.seq = next
			}
		}
	}
	bySeq := func(x, y *finishedRow) int { return cmp.Compare(x.seq, y.seq) }
	byTime := func(x, y *finishedRow) int { return cmp.Compare(x.when, y.when) }
	kept := slices.Clone(rows)
	if slices.SortFunc(kept, bySeq); slices.IsSortedFunc(kept, byTime) {
		return
	}
	for i, r := range rows {
		r.seq = first + uint64(i)
	}
}
