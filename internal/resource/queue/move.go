package queue

import (
	"errors"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/resource/leasing"
)

var errUnlisted = errors.New("an index lists a message that is not stored, or that is in another state")

// move takes a message from its state to another: index entries, counters and
// the message itself. Every change of state goes through here. notBefore is for
// scheduled. For leased, the caller has set m.Lease and writes the lease row.
func (l *lane) move(id string, m *message, to state, notBefore int64) {
	from := m.State
	l.leave(m)
	m.NotBefore = notBefore
	m.StateVersion++
	l.enter(id, m, to)
	if m.ExpiresAt != 0 && from.waits() != to.waits() {
		l.expiry(id, m, to.waits())
	}
	if to.finished() {
		l.head.StoredBytes -= int64(m.Charge)
		remove(l, &bodies, seqKey{l.owner, m.Seq})
		l.listFinished(id, to)
	}
	put(l, &messages, messageKey{l.owner, id}, m)
}

// leave removes the index entry of the message's state.
func (l *lane) leave(m *message) {
	h := &l.head
	h.Counts[m.State]--
	switch m.State {
	case scheduled:
		remove(l, &schedules, timeKey{l.owner, m.NotBefore, m.Seq})
	case ready:
		remove(l, &readies, readyKey{Owner: l.owner, Priority: m.Priority, Seq: m.ReadySeq})
		h.Ready[m.Priority].Count--
	case leased:
		l.clearLease(&m.Lease)
		h.InFlightBytes -= int64(m.Charge)
	case dead:
		remove(l, &deads, seqKey{l.owner, m.Seq})
		h.DeadBytes -= int64(m.Charge)
	case pendingDead:
		remove(l, &pendingDeads, seqKey{l.owner, m.Seq})
	}
}

// enter adds the index entry of the new state. A message that becomes ready
// goes to the end of its priority, unless it keeps its place.
func (l *lane) enter(id string, m *message, to state) {
	h := &l.head
	if to != leased {
		m.Lease = lease{}
	}
	m.State = to
	h.Counts[to]++
	switch to {
	case scheduled:
		m.ReadySeq = 0
		insert(l, &schedules, timeKey{l.owner, m.NotBefore, m.Seq}, &idEntry{id})
		h.First.Scheduled = leasing.Earlier(h.First.Scheduled, m.NotBefore)
	case ready:
		if m.ReadySeq == 0 {
			h.ReadySeq++
			m.ReadySeq = h.ReadySeq
		}
		l.list(id, m)
		l.woken++
	case leased:
		h.InFlightBytes += int64(m.Charge)
		h.First.Lease = leasing.Earlier(h.First.Lease, m.Lease.Until)
	case dead:
		insert(l, &deads, seqKey{l.owner, m.Seq}, &idEntry{id})
		h.DeadBytes += int64(m.Charge)
	case pendingDead:
		insert(l, &pendingDeads, seqKey{l.owner, m.Seq}, &idEntry{id})
	}
	if to >= acked {
		m.ReadySeq = 0
		if m.FinishedAt == 0 || to.finished() {
			m.FinishedAt = l.c.Now
		}
	}
}

// list puts a message into the claim order at its place.
func (l *lane) list(id string, m *message) {
	r := &l.head.Ready[m.Priority]
	if r.Count == 0 || m.ReadySeq < r.Floor {
		r.Floor = m.ReadySeq
	}
	r.Count++
	insert(l, &readies, readyKey{Owner: l.owner, Priority: m.Priority, Seq: m.ReadySeq},
		&readyEntry{ID: id, Content: m.ContentBytes, Charge: m.Charge, ExpiresAt: m.ExpiresAt})
}

// expiry adds or removes the message's row in the order of expiries.
func (l *lane) expiry(id string, m *message, add bool) {
	k := timeKey{l.owner, m.ExpiresAt, m.Seq}
	if !add {
		remove(l, &expiries, k)
		l.head.ExpiringRows--
		return
	}
	insert(l, &expiries, k, &idEntry{id})
	l.head.ExpiringRows++
	l.head.First.Expiry = leasing.Earlier(l.head.First.Expiry, m.ExpiresAt)
}

// expire ends a message whose time has passed.
func (l *lane) expire(id string, m *message) {
	l.move(id, m, expired, 0)
	l.head.Totals.Expired++
}

// isExpired says that the message may not be delivered any more.
func (m *message) isExpired(now int64) bool { return m.ExpiresAt != 0 && m.ExpiresAt <= now }

// maxAttempts is how often the message may be claimed, by the policy in force.
func (m *message) maxAttempts(p *api.QueuePolicy) uint64 {
	if m.MaxAttempts != 0 {
		return m.MaxAttempts
	}
	return uint64(p.MaxAttempts)
}

// exhausted says that no claim is left. It is asked at every step, so a lowered
// limit holds for messages that are stored already.
func (m *message) exhausted(p *api.QueuePolicy) bool { return m.Attempts >= m.maxAttempts(p) }

// wait schedules the message, or makes it ready when its time has come. An
// expired one ends, an exhausted one is put aside.
func (l *lane) wait(id string, m *message, notBefore int64) {
	switch {
	case m.isExpired(l.c.Now):
		l.expire(id, m)
	case m.exhausted(l.policy):
		l.bury(id, m)
	case notBefore > l.c.Now:
		l.move(id, m, scheduled, notBefore)
	default:
		m.ReadySeq = 0 // of an earlier time as ready: it goes to the end
		l.move(id, m, ready, 0)
	}
}
