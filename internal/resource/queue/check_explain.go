package queue

import (
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// The sums say that something of a lane is wrong; here it is looked for, message by
// message and row by row.

// explain tells what is wrong between the messages of a lane and its bodies, leases
// and finished rows.
func (a *auditor) explain(t *tally) error {
	switch {
	case t.told():
	case a.few(t, "finished messages", "index", op.ReportDerived, t.remembered):
		if err := a.again(t); err != nil {
			return err
		}
	default:
		t.passed = true
	}
	if t.bodies.equal() && t.leases.equal() ||
		!a.few(t, "unfinished messages", "index", (*op.Audit).Report, t.bodies, t.leases) {
		return nil
	}
	told := false
	tell := func(invariant, id, format string, args ...any) {
		told = true
		a.Report(invariant, a.where(t.owner, id), format, args...)
	}
	under := table.Range{Prefix: t.owner.Append(nil)}
	numbers := map[uint64]bool{}
	err := messages.Scan(a.R, under, func(k messageKey, m *message) (bool, error) {
		if m.State.finished() {
			return true, nil
		}
		if numbers[m.Seq] {
			tell("index", k.ID, "another message has the number %d as well", m.Seq)
		}
		numbers[m.Seq] = true
		b, ok, err := bodies.Get(a.R, seqKey{k.Owner, m.Seq})
		switch {
		case err != nil:
			return true, a.Survive(err)
		case !ok:
			tell("index", k.ID, "the message is %s and has no body", m.State.name())
		case uint64(len(b.Payload)) != m.PayloadBytes || b.content() != m.ContentBytes:
			tell("body", k.ID, "the body has %d bytes of payload and %d of content; the message says %d and %d", len(b.Payload), b.content(), m.PayloadBytes, m.ContentBytes)
		}
		if m.State == leased {
			listed, err := a.listsLease(k, m)
			if err != nil {
				return true, a.Survive(err)
			}
			if !listed {
				tell("lease", k.ID, "the message is leased, and its lease row is not there or does not list it")
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	err = bodies.Scan(a.R, under, func(k seqKey, _ *body) (bool, error) {
		if !numbers[k.Seq] {
			tell("index", "", "the body with number %d has no message", k.Seq)
		}
		return true, nil
	})
	if err == nil && !told {
		tell("lease", "", "lease rows list a message twice")
	}
	return a.Survive(err)
}

// few says that so many rows may be held as it takes to find out what is wrong; else
// it tells that something is.
func (a *auditor) few(t *tally, what, invariant string, report func(*op.Audit, string, string, string, ...any), sums ...both) bool {
	rows := int64(0)
	for _, s := range sums {
		rows += s.messages.Things() + s.rows.Things()
	}
	if op.Holds(a.Audit, rows) {
		return true
	}
	report(a.Audit, invariant, a.where(t.owner, ""),
		"the %s and the rows that must tell the same do not; they are %d, too many to say here which: a check of the stopped store says it", what, rows)
	return false
}

// listsLease says whether the message's lease row names it.
func (a *auditor) listsLease(k messageKey, m *message) (bool, error) {
	x := &m.Lease
	row, ok, err := leases.Get(a.R, timeKey{k.Owner, x.Until, x.Batch})
	return ok && x.Index < uint64(len(row.IDs)) && row.IDs[x.Index] == k.ID, err
}
