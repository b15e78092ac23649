package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// bury puts a message aside that will not be tried again: among the dead
// letters, or waiting for room there. It is never dropped.
func (l *lane) bury(id string, m *message) {
	to := pendingDead
	if l.deadRoom(m.Charge) {
		to = dead
	}
	l.move(id, m, to, 0)
	l.head.Totals.DeadLettered++
}

// deadRoom says that the policy allows one more dead letter of that size.
func (l *lane) deadRoom(charge uint64) bool {
	p := &l.policy.DeadLetter
	return l.head.Counts[dead] < p.MaxMessages && l.head.DeadBytes+int64(charge) <= p.MaxBytes
}

// admitDead moves at most budget messages, in order, from waiting for room to
// the dead letters. It stops at the first that does not fit.
func admitDead(l *lane, budget int) error {
	if l.head.Counts[pendingDead] == 0 || !l.deadRoom(0) {
		return nil
	}
	var ids []string
	err := pendingDeads.Scan(l.c.Tx, table.Range{Prefix: l.owner.Append(nil)}, func(_ seqKey, v *idEntry) (bool, error) {
		ids = append(ids, v.ID)
		return len(ids) < budget, nil
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		m, err := l.listed(id)
		if err != nil {
			return err
		}
		if !l.deadRoom(m.Charge) {
			return nil
		}
		l.move(id, m, dead, 0)
	}
	l.again = l.again || l.head.Counts[pendingDead] > 0
	return nil
}

// redrive gives a dead letter a new delivery generation.
func redrive(l *lane, id string, m *message, notBefore int64) error {
	if m.State != dead && m.State != pendingDead {
		return wrongState(id, m, "only a dead letter can be redriven")
	}
	if m.isExpired(l.c.Now) {
		return wrongState(id, m, "its expiresAt has passed, so it would expire at once; enqueue it anew if it is still wanted").
			With("expiresAt", "%s", api.Time(m.ExpiresAt))
	}
	if err := checkTimes(notBefore, m.ExpiresAt); err != nil {
		return err
	}
	m.Generation++
	m.Redrives++
	m.Attempts, m.Failures, m.LeaseLosses, m.FinishedAt = 0, 0, 0, 0
	l.wait(id, m, notBefore)
	l.head.Totals.Redriven++
	return admitDead(l, maxAdmitted)
}

// inboxExpired says that a record of the inbox made when the message was stored
// is forgotten by now. What a handler commits is recorded under the message's
// id; without the record the same effects are applied again.
func (m *message) inboxExpired(now int64) bool {
	return now >= leasing.After(m.EnqueuedAt, limits.InboxSeconds*1000)
}

// maxAdmitted bounds the messages that take the room one command makes among
// the dead letters; the due service admits the rest.
const maxAdmitted = 16
