package queue

import (
	"github.com/keyload/keyload/internal/resource/leasing"
)

// goneBatch is what a command takes out of one lease row.
type goneBatch struct {
	until  int64
	batch  uint64
	size   uint64
	places bits
	count  uint64
}

// renewBatch is one new lease row for renewals until one instant.
type renewBatch struct {
	until int64
	batch uint64
	ids   []string
}

// sizeInLeft, as the size of a lease's batch, says that table leasesLeft has a
// row for it from the start: when the lease was given it was not known how many
// more would join.
const sizeInLeft = 0

// clearLease notes that a message has left its lease row.
func (l *lane) clearLease(x *lease) {
	for i := len(l.gone) - 1; i >= 0; i-- {
		if g := &l.gone[i]; g.batch == x.Batch {
			g.places.set(x.Index)
			g.count++
			return
		}
	}
	g := goneBatch{until: x.Until, batch: x.Batch, size: x.Size, count: 1}
	g.places.set(x.Index)
	l.gone = append(l.gone, g)
}

// clearLeases brings the lease rows up to date, each once.
func clearLeases(l *lane) error {
	for i := range l.gone {
		g := &l.gone[i]
		key := seqKey{l.owner, g.batch}
		left, had := firstBits(g.size), false
		if g.size == sizeInLeft || g.count < g.size {
			stored, ok, err := leasesLeft.Get(l.c.Tx, key)
			if err != nil {
				return err
			}
			if had = ok; ok {
				left = stored
			}
		}
		for w := range left {
			left[w] &^= g.places[w]
		}
		switch {
		case left.empty():
			remove(l, &leases, timeKey{l.owner, g.until, g.batch})
			if had {
				remove(l, &leasesLeft, key)
			}
		case had:
			put(l, &leasesLeft, key, &left)
		default:
			insert(l, &leasesLeft, key, &left)
		}
	}
	return nil
}

// renew moves a leased message into the lease row of this command's renewals
// until the same instant.
func renew(l *lane, id string, m *message, until int64) {
	var b *renewBatch
	for _, r := range l.renewed {
		if r.until == until {
			b = r
		}
	}
	if b == nil {
		l.head.Batch++
		b = &renewBatch{until: until, batch: l.head.Batch}
		l.renewed = append(l.renewed, b)
	}
	l.clearLease(&m.Lease)
	m.Lease.Until, m.Lease.Batch, m.Lease.Index, m.Lease.Size = until, b.batch, uint64(len(b.ids)), sizeInLeft
	if l.alone {
		m.Lease.Size = 1
	}
	b.ids = append(b.ids, id)
	m.LeaseVersion = b.batch
	m.StateVersion++
	l.head.First.Lease = leasing.Earlier(l.head.First.Lease, until)
	put(l, &messages, messageKey{l.owner, id}, m)
}

func writeRenewals(l *lane) {
	for _, r := range l.renewed {
		insert(l, &leases, timeKey{l.owner, r.until, r.batch}, &batch{IDs: r.ids})
		if !l.alone {
			left := firstBits(uint64(len(r.ids)))
			insert(l, &leasesLeft, seqKey{l.owner, r.batch}, &left)
		}
	}
}

// lose ends a lease that ran out: the attempt counts, and the retry policy says
// how long the message waits, from the instant the lease ended.
func lose(l *lane, id string, m *message) {
	ended := m.Lease.Until
	m.LeaseLosses++
	l.head.Totals.LeasesLost++
	l.wait(id, m, leasing.After(ended, leasing.Backoff(l.c, &l.policy.Retry, m.Failures+m.LeaseLosses)))
}
