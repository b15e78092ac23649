package group

import (
	"errors"

	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// move takes a place from its state to another: index entries, counters and the
// row itself. For waiting, the caller has set e.NotBefore; for leased e.Until,
// e.Batch and e.First, and it makes the lease row. dl is the dead letter where
// the place is one.
func (g *group) move(p place, e *entry, to state, dl *deadLetter) error {
	if err := g.leave(p, e); err != nil {
		return err
	}
	g.enter(p, e, to)
	g.store(p, e, dl)
	return nil
}

// store writes the row of a place.
func (g *group) store(p place, e *entry, dl *deadLetter) {
	k := rowKey{g.ref, p.Position}
	if p.Window {
		rows.Put(g.c.Tx, k, &row{entry: *e})
		return
	}
	dl.entry = *e
	dl.Version++
	deadLetters.Put(g.c.Tx, k, dl)
}

func (g *group) counts(p place) *[states]int64 {
	if p.Window {
		return &g.head.Counts
	}
	return &g.head.DeadCounts
}

// leave removes the index entry of the place's state.
func (g *group) leave(p place, e *entry) error {
	g.counts(p)[e.State]--
	switch e.State {
	case ready:
		readies.Delete(g.c.Tx, readyKey{g.ref, p})
	case waiting:
		waits.Delete(g.c.Tx, timeKey{g.ref, e.NotBefore, p.code()})
	case leased:
		l, err := g.leaseOf(e)
		if err != nil {
			return err
		}
		return l.remove(p)
	}
	return nil
}

// enter adds the index entry of the new state.
func (g *group) enter(p place, e *entry, to state) {
	h := &g.head
	if to != leased {
		e.Until, e.Batch, e.First = 0, 0, 0
	}
	if to != waiting {
		e.NotBefore = 0
	}
	e.State = to
	g.counts(p)[to]++
	switch to {
	case ready:
		floor := &h.Floor[kindOf(p)]
		if g.counts(p)[ready] == 1 || p.Position < *floor {
			*floor = p.Position
		}
		readies.Put(g.c.Tx, readyKey{g.ref, p}, &table.None{})
		g.woken++
	case waiting:
		waits.Put(g.c.Tx, timeKey{g.ref, e.NotBefore, p.code()}, &table.None{})
		h.First.Wait = leasing.Earlier(h.First.Wait, e.NotBefore)
	case leased:
		h.First.Lease = leasing.Earlier(h.First.Lease, e.Until)
	}
}

// listed reads the place that an index lists in a state.
func (g *group) listed(p place, s state) (*entry, *deadLetter, error) {
	e, dl, err := g.placed(p)
	if err == nil && (e == nil || e.State != s) {
		k := rowKey{g.ref, p.Position}
		err = &table.Damage{Table: rows.Name, Key: rows.Bytes(k), Cause: errUnlisted}
	}
	return e, dl, err
}

// placed reads a place; nil when it is not there.
func (g *group) placed(p place) (*entry, *deadLetter, error) {
	if p.Window {
		e, err := g.find(p.Position)
		return e, nil, err
	}
	dl, ok, err := deadLetters.Get(g.c.Tx, rowKey{g.ref, p.Position})
	if err != nil || !ok {
		return nil, nil, err
	}
	return &dl.entry, &dl, nil
}

// heldLease is a lease row as this command found and changed it, or made it.
type heldLease struct {
	key  timeKey
	row  lease
	left int
	made bool
}

var errNotInLease = errors.New("the lease of a position does not list it")

// leaseOf finds the lease that an entry is under.
func (g *group) leaseOf(e *entry) (*heldLease, error) {
	for i := len(g.held) - 1; i >= 0; i-- {
		if g.held[i].key.Seq == e.Batch {
			return g.held[i], nil
		}
	}
	k := timeKey{g.ref, e.Until, e.Batch}
	row, ok, err := leases.Get(g.c.Tx, k)
	if err == nil && !ok {
		err = &table.Damage{Table: leases.Name, Key: leases.Bytes(k), Cause: errNotInLease}
	}
	if err != nil {
		return nil, err
	}
	l := &heldLease{key: k, row: row, left: len(row.Places)}
	g.held = append(g.held, l)
	return l, nil
}

// gone marks a place that left its lease in heldLease.row.Places; no code is 0,
// since positions begin at 1.
const gone = 0

func (l *heldLease) remove(p place) error {
	code := p.code()
	for i, c := range l.row.Places {
		if c == code {
			l.row.Places[i] = gone
			l.left--
			return nil
		}
	}
	return &table.Damage{Table: leases.Name, Key: leases.Bytes(l.key), Cause: errNotInLease}
}

// writeLeases brings the lease rows up to date, each once.
func writeLeases(g *group) {
	for _, l := range g.held {
		if !l.made && l.left == len(l.row.Places) {
			continue
		}
		places := make([]uint64, 0, l.left)
		for _, c := range l.row.Places {
			if c != gone {
				places = append(places, c)
			}
		}
		sortCodes(places)
		l.row.Places = places
		switch {
		case l.left > 0 && l.made:
			leases.Insert(g.c.Tx, l.key, &l.row)
		case l.left > 0:
			leases.Put(g.c.Tx, l.key, &l.row)
		case !l.made:
			leases.Delete(g.c.Tx, l.key)
		}
	}
	g.held = nil
}
