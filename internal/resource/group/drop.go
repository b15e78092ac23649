package group

import (
	"math"

	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/table"
)

// maxRows bounds the rows of a window of so many matched positions: one for each
// that is unfinished, and at most one run after each of them.
func maxRows(window int64) int { return 2 * int(window) }

// drop removes the window and everything that indexes it. It reads all of it
// first: a row that is not what it must be, or one too many, is damage and nothing
// is changed. Redriven dead letters are not of the window; their leases end by
// themselves, since no token holds any more. It returns how many finished
// positions lay above the checkpoint.
func drop(g *group) (finishedAhead int64, err error) {
	h := &g.head
	finishedAhead, err = checkWindow(g)
	if err != nil {
		return 0, err
	}
	kept, err := leasesWithoutWindow(g)
	if err != nil {
		return 0, err
	}
	for _, prefix := range [...][]byte{
		under(table.GroupRow, g.ref), append(under(table.GroupReady, g.ref), windowKind), under(table.GroupKeyed, g.ref), under(table.GroupRunEnd, g.ref),
	} {
		if err := removeAll(g.c.Tx, prefix); err != nil {
			return 0, err
		}
	}
	if err := dropWaits(g); err != nil {
		return 0, err
	}
	for _, l := range kept {
		if len(l.row.Places) == 0 {
			leases.Delete(g.c.Tx, l.key)
		} else {
			leases.Put(g.c.Tx, l.key, &l.row)
		}
	}
	h.Counts, h.Matched, h.Runs = [states]int64{}, 0, 0
	return finishedAhead, nil
}

// checkWindow reads every row of the window and compares it with the head.
func checkWindow(g *group) (finishedAhead int64, err error) {
	h := &g.head
	n, next := 0, h.Checkpoint+1
	afterRun := true // a run must not touch the checkpoint
	err = rows.Scan(g.c.Tx, table.Range{Prefix: g.ref.append(nil)}, func(k rowKey, r *row) (bool, error) {
		n++
		last := k.Position
		if r.isRun() {
			last = r.End
			finishedAhead += int64(last - k.Position + 1)
		}
		if n > maxRows(g.policy.MaxWindow) || k.Position != next || last < k.Position || last > h.Issued || r.isRun() && afterRun {
			return false, windowDamage(k)
		}
		next, afterRun = last+1, r.isRun()
		return true, nil
	})
	if err == nil && (int64(n) != h.rows() || next != h.Issued+1) {
		err = windowDamage(rowKey{g.ref, next})
	}
	return finishedAhead, err
}

// leasesWithoutWindow are the lease rows that list a position of the window, with
// those left out.
func leasesWithoutWindow(g *group) (out []heldLease, err error) {
	err = leases.Scan(g.c.Tx, table.Range{Prefix: g.ref.append(nil)}, func(k timeKey, l *lease) (bool, error) {
		kept := l.Places[:0:0]
		for _, code := range l.Places {
			if !placeOf(code).Window {
				kept = append(kept, code)
			}
		}
		if len(kept) < len(l.Places) {
			l.Places = kept
			out = append(out, heldLease{key: k, row: *l})
		}
		return true, nil
	})
	return out, err
}

func dropWaits(g *group) error {
	var due []timeKey
	err := waits.Scan(g.c.Tx, table.Range{Prefix: g.ref.append(nil)}, func(k timeKey, _ *table.None) (bool, error) {
		if placeOf(k.Seq).Window {
			due = append(due, k)
		}
		return true, nil
	})
	for _, k := range due {
		waits.Delete(g.c.Tx, k)
	}
	return err
}

// removeAll deletes every row under a prefix; a window bounds how many these are.
func removeAll(tx *kv.Tx, prefix []byte) error {
	_, next, err := table.RemoveSome(tx, prefix, nil, math.MaxInt)
	for err == nil && next != nil { // their bytes were too many for once
		_, next, err = table.RemoveSome(tx, prefix, next, math.MaxInt)
	}
	return err
}
