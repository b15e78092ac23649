package queue

import (
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
)

// messages reads every message, counts it, and says which rows follow from it.
func (a *auditor) messages() error {
	err := op.Each(a.Audit, &messages, func(k messageKey, m *message) error {
		t := a.lane(k.Owner)
		t.counts[m.State]++
		t.lastSeq, t.lastReady, t.lastBatch = max(t.lastSeq, m.Seq), max(t.lastReady, m.ReadySeq), max(t.lastBatch, m.LeaseVersion)
		a.Count("messages", 1)
		consistent(a, k, m)
		if m.State.finished() {
			t.first.Finished = leasing.Earlier(t.first.Finished, m.FinishedAt)
			remember(a, t.remembered.messages.Add, m.FinishedAt, m.State, k.ID)
			return nil
		}
		t.stored += int64(m.Charge)
		t.bodies.messages.Add(content(a, m.Seq, m.PayloadBytes, m.ContentBytes))
		a.imply(k, m, t)
		return nil
	})
	if err != nil {
		return err
	}
	//keyload:sorted what is implied is summed up, in any order
	for k, l := range a.partial {
		if l.size == sizeInLeft || l.left != firstBits(min(l.size, maxLeased)) {
			op.Imply(a.Audit, &leasesLeft, k, &l.left)
		}
	}
	return nil
}

// maxLeased is how many messages one lease row lists at most.
const maxLeased = 64 * uint64(len(bits{}))

// imply says which index rows an unfinished message has.
func (a *auditor) imply(k messageKey, m *message, t *tally) {
	entry, seq := idEntry{k.ID}, seqKey{k.Owner, m.Seq}
	switch m.State {
	case scheduled:
		t.first.Scheduled = leasing.Earlier(t.first.Scheduled, m.NotBefore)
		op.Imply(a.Audit, &schedules, timeKey{k.Owner, m.NotBefore, m.Seq}, &entry)
	case ready:
		if t.ready[m.Priority] == 0 || m.ReadySeq < t.lowest[m.Priority] {
			t.lowest[m.Priority] = m.ReadySeq
		}
		t.ready[m.Priority]++
		op.Imply(a.Audit, &readies, readyKey{Owner: k.Owner, Priority: m.Priority, Seq: m.ReadySeq},
			&readyEntry{ID: k.ID, Content: m.ContentBytes, Charge: m.Charge, ExpiresAt: m.ExpiresAt})
	case leased:
		t.inFlight += int64(m.Charge)
		t.first.Lease = leasing.Earlier(t.first.Lease, m.Lease.Until)
		a.lease(k, m, t)
	case dead:
		t.dead += int64(m.Charge)
		op.Imply(a.Audit, &deads, seq, &entry)
	case pendingDead:
		op.Imply(a.Audit, &pendingDeads, seq, &entry)
	}
	if m.ExpiresAt != 0 && m.State.waits() {
		t.expiring++
		t.first.Expiry = leasing.Earlier(t.first.Expiry, m.ExpiresAt)
		op.Imply(a.Audit, &expiries, timeKey{k.Owner, m.ExpiresAt, m.Seq}, &entry)
	}
}

// consistent: a message has what its state asks for, and nothing of another.
func consistent(a *auditor, k messageKey, m *message) {
	where := func() string { return a.where(k.Owner, k.ID) }
	waits := m.State.waits()
	switch {
	case (m.NotBefore != 0) != (m.State == scheduled),
		(m.ReadySeq != 0) != (m.State == ready || m.State == leased),
		(m.FinishedAt != 0) != (!waits && m.State != leased),
		m.Seq == 0, m.StateVersion == 0, m.Generation != m.Redrives+1,
		m.ContentBytes < m.PayloadBytes, m.Charge < m.ContentBytes:
		a.Report("state", where(), "the message has fields that a %s one cannot have, or lacks one", m.State.name())
	case m.State != cancelled && m.Attempts != m.Failures+m.LeaseLosses+underWay(m.State):
		a.Report("state", where(), "the message was claimed %d times and is %s, with %d failures and %d leases lost", m.Attempts, m.State.name(), m.Failures, m.LeaseLosses)
	case m.State == leased && (m.Lease.Until == 0 || m.Lease.Batch == 0 || m.Lease.Batch != m.LeaseVersion || m.Lease.Index >= maxLeased || m.Lease.Size > maxLeased):
		a.Report("lease", where(), "the lease has no deadline, batch or version")
	}
	if a.Future(m.EnqueuedAt, m.FinishedAt, m.Lease.First) {
		a.Past(where(), "its enqueueing, end or lease", max(m.EnqueuedAt, m.FinishedAt, m.Lease.First))
	}
}

// underWay is how many claims have not failed.
func underWay(s state) uint64 {
	if s == leased || s == acked {
		return 1
	}
	return 0
}

// content is what a message and its body say of each other.
func content(a *auditor, seq, payload, content uint64) []byte {
	a.scratch = codec.AppendUint64(codec.AppendUint64(codec.AppendUint64(a.scratch[:0], seq), payload), content)
	return a.scratch
}

func (a *auditor) bodies() error {
	return op.Each(a.Audit, &bodies, func(k seqKey, b *body) error {
		a.lane(k.Owner).bodies.rows.Add(content(a, k.Seq, uint64(len(b.Payload)), b.content()))
		if _, err := jsontree.Compact(b.Payload); b.JSON && err != nil {
			a.Report("body", a.where(k.Owner, ""), "the payload of the message with number %d is no JSON value", k.Seq)
		}
		for i := 1; i < len(b.Headers); i++ {
			if b.Headers[i-1].Name >= b.Headers[i].Name {
				a.Report("body", a.where(k.Owner, ""), "the headers of the message with number %d are out of order", k.Seq)
			}
		}
		return nil
	})
}

// lease notes a leased message in its lease.
func (a *auditor) lease(k messageKey, m *message, t *tally) {
	x := &m.Lease
	t.leases.messages.Add(listing(a, x.Until, x.Batch, x.Index, k.ID))
	row := seqKey{k.Owner, x.Batch}
	l := a.partial[row]
	if l == nil {
		l = &leftOf{size: x.Size}
		a.partial[row] = l
	}
	if x.Index >= maxLeased {
		return // told
	}
	if l.left.has(x.Index) || l.size != x.Size || x.Size != sizeInLeft && x.Index >= x.Size {
		a.Report("lease", a.where(k.Owner, k.ID), "another message has its place in the lease, or says that the lease has another size")
	}
	l.left.set(x.Index)
}

// listing is one place of a lease row, as message and row say it.
func listing(a *auditor, until int64, batch, index uint64, id string) []byte {
	b := codec.AppendUint64(codec.AppendUint64(codec.AppendInt64(a.scratch[:0], until), batch), index)
	a.scratch = append(b, id...)
	return a.scratch
}

// leases compares the places of lease rows that are left with the messages under
// the lease. Who has gone before is listed still, and is nobody's business.
func (a *auditor) leases() error {
	return op.Each(a.Audit, &leases, func(k timeKey, v *batch) error {
		t := a.lane(k.Owner)
		t.lastBatch = max(t.lastBatch, k.Seq)
		l := a.partial[seqKey{k.Owner, k.Seq}]
		if l == nil {
			a.Report("lease", a.where(k.Owner, ""), "lease row %d holds nothing", k.Seq)
			return nil
		}
		if v.State != 0 || l.size != sizeInLeft && l.size != uint64(len(v.IDs)) {
			a.Report("lease", a.where(k.Owner, ""), "lease row %d is of %d messages; they say that it is of %d", k.Seq, len(v.IDs), l.size)
		}
		for i, id := range v.IDs {
			if uint64(i) < maxLeased && l.left.has(uint64(i)) {
				t.leases.rows.Add(listing(a, k.When, k.Seq, uint64(i), id))
			}
		}
		return nil
	})
}
