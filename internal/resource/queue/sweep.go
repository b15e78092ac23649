package queue

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/table"
)

// dueRow is one row of an index by instant that has come.
type dueRow struct {
	key timeKey
	ids []string
}

// dueRows reads the rows of an index whose instant is at most now, from first
// on, until they hold budget messages. next is the new lower bound of the
// index: the first instant not taken, or 0 when no row is left. rest says that
// more are due.
func dueRows[V any](l *lane, t *table.Table[timeKey, V], first, now int64, budget int, ids func(*V) []string) (rows []dueRow, next int64, rest bool, err error) {
	prefix := l.owner.Append(nil)
	from := codec.AppendInt64(l.owner.Append(nil), first)
	n := 0
	err = t.Scan(l.c.Tx, table.Range{Prefix: prefix, From: from}, func(k timeKey, v *V) (bool, error) {
		if k.When > now || n >= budget {
			next, rest = k.When, k.When <= now
			return false, nil
		}
		row := dueRow{k, ids(v)}
		rows = append(rows, row)
		n += len(row.ids)
		return true, nil
	})
	return rows, next, rest, err
}

func oneID(v *idEntry) []string  { return []string{v.ID} }
func batchIDs(v *batch) []string { return v.IDs }

// sweep does what logged time has brought about: leases that ran out, then
// messages that became due. It returns how many of each it looked at.
func sweep(l *lane) (lost, due int, err error) {
	if lost, err = loseLeases(l, limits.ScanExpired); err != nil {
		return lost, 0, err
	}
	due, err = promote(l, limits.ScanScheduled)
	return lost, due, err
}

// loseLeases ends at most budget leases whose deadline has come.
func loseLeases(l *lane, budget int) (int, error) {
	now, first := l.c.Now, &l.head.First
	if first.Lease == 0 || first.Lease > now {
		return 0, nil
	}
	rows, next, rest, err := dueRows(l, &leases, first.Lease, now, budget, batchIDs)
	if err != nil {
		return 0, err
	}
	n := 0
rows:
	for _, row := range rows {
		left, ok, err := leasesLeft.Get(l.c.Tx, seqKey{l.owner, row.key.Seq})
		if err != nil {
			return n, err
		}
		if !ok {
			left = firstBits(uint64(len(row.ids)))
		}
		for i, id := range row.ids {
			if !left.has(uint64(i)) {
				continue
			}
			if n == budget {
				next, rest = row.key.When, true
				break rows
			}
			n++
			m, err := leasedIn(l, id, row.key)
			if err != nil {
				return n, err
			}
			lose(l, id, m)
		}
	}
	first.Lease = next
	l.again = l.again || rest
	return n, nil
}

// leasedIn reads a message that a lease row lists and makes sure that this very
// lease is the one it is under: nothing is taken from its holder by a stale
// list.
func leasedIn(l *lane, id string, row timeKey) (*message, error) {
	m, err := l.listed(id)
	if err == nil && (m.State != leased || m.Lease.Until != row.When || m.Lease.Batch != row.Seq) {
		err = &table.Damage{Table: leases.Name, Key: leases.Bytes(row), Cause: errUnlisted}
	}
	return m, err
}

// promote makes at most budget scheduled messages ready whose time has come.
func promote(l *lane, budget int) (int, error) {
	now, first := l.c.Now, &l.head.First
	if first.Scheduled == 0 || first.Scheduled > now {
		return 0, nil
	}
	rows, next, rest, err := dueRows(l, &schedules, first.Scheduled, now, budget, oneID)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		m, err := l.listedAs(row.ids[0], scheduled)
		if err != nil {
			return 0, err
		}
		l.wait(row.ids[0], m, 0)
	}
	first.Scheduled = next
	l.again = l.again || rest
	return len(rows), nil
}

// expireDue ends at most budget waiting messages whose time has passed.
func expireDue(l *lane, budget int) (int, error) {
	now, first := l.c.Now, &l.head.First
	if first.Expiry == 0 || first.Expiry > now {
		return 0, nil
	}
	rows, next, rest, err := dueRows(l, &expiries, first.Expiry, now, budget, oneID)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		m, err := l.listed(row.ids[0])
		if err == nil && (!m.State.waits() || m.ExpiresAt != row.key.When) {
			err = &table.Damage{Table: expiries.Name, Key: expiries.Bytes(row.key), Cause: errUnlisted}
		}
		if err != nil {
			return 0, err
		}
		l.expire(row.ids[0], m)
	}
	first.Expiry = next
	l.again = l.again || rest
	return len(rows), nil
}

// prune forgets finished messages past their retention: at most budget, and
// what else the last row lists.
func prune(l *lane, budget int) (int, error) {
	first := &l.head.First
	before := l.c.Now - l.policy.FinishedRetentionSeconds*1000
	if first.Finished == 0 || first.Finished > before {
		return 0, nil
	}
	type pruned struct {
		key  timeKey
		what batch
	}
	var rows []pruned
	from := codec.AppendInt64(l.owner.Append(nil), first.Finished)
	n, next, rest := 0, int64(0), false
	err := finisheds.Scan(l.c.Tx, table.Range{Prefix: l.owner.Append(nil), From: from}, func(k timeKey, v *batch) (bool, error) {
		if k.When > before || n >= budget {
			next, rest = k.When, k.When <= before
			return false, nil
		}
		rows = append(rows, pruned{k, *v})
		n += len(v.IDs)
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		for _, id := range row.what.IDs {
			remove(l, &messages, messageKey{l.owner, id})
		}
		remove(l, &finisheds, row.key)
		l.head.FinishedRows--
		l.head.Counts[row.what.State] -= int64(len(row.what.IDs))
		l.head.Totals.Pruned += int64(len(row.what.IDs))
	}
	first.Finished = next
	l.again = l.again || rest
	return n, nil
}

// listedAs is listed for a message that must be in a state.
func (l *lane) listedAs(id string, s state) (*message, error) {
	m, err := l.listed(id)
	if err == nil && m.State != s {
		err = &table.Damage{Table: messages.Name, Key: messages.Bytes(messageKey{l.owner, id}), Cause: errUnlisted}
	}
	return m, err
}
