package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/resource/source"
)

// failedAttempts is the failure code of a group that paused itself because the
// attempts of a position were used up.
const failedAttempts = "attemptsExhausted"

// exhausted says that no claim is left by the policy in force.
func exhausted(g *group, e *entry) bool { return e.Attempts >= uint64(g.policy.MaxAttempts) }

// retry lets a place wait for its next attempt, or ends its attempts.
func retry(g *group, p place, e *entry, dl *deadLetter, notBefore int64) error {
	switch {
	case exhausted(g, e):
		return exhaust(g, p, e, dl)
	case notBefore > g.c.Now:
		if err := g.leave(p, e); err != nil {
			return err
		}
		e.NotBefore = notBefore
		g.enter(p, e, waiting)
		g.store(p, e, dl)
		return nil
	default:
		return g.move(p, e, ready, dl)
	}
}

// exhaust does with a place whose attempts are used up as the policy says. A
// redriven dead letter waits for a person again, whatever the policy.
func exhaust(g *group, p place, e *entry, dl *deadLetter) error {
	if dl != nil {
		return g.move(p, e, dead, dl)
	}
	switch g.policy.OnExhausted {
	case api.ExhaustedDeadLetter:
		done, err := bury(g, p.Position, e)
		if done || err != nil {
			return err
		}
	case api.ExhaustedPause:
		if !g.head.Paused {
			g.head.Paused, g.head.FailureCode, g.head.FailedPosition = true, failedAttempts, p.Position
		}
		e.Attempts, e.Failures, e.LeaseLosses = 0, 0, 0 // after resume it is tried anew
		return g.move(p, e, ready, nil)
	}
	return g.move(p, e, held, nil)
}

// bury copies the event of a position to the dead letters and finishes the
// position. done is false when there is no room.
func bury(g *group, position uint64, e *entry) (done bool, err error) {
	k := rowKey{g.ref, position}
	event, err := source.Raw(&g.c.Scope, g.name.Source, position)
	if err != nil {
		return false, err
	}
	old, again, err := deadLetters.Get(g.c.Tx, k) // of an earlier pass over the position
	if err != nil {
		return false, err
	}
	h, room := &g.head, &g.policy.DeadLetter
	count, bytes := h.deadLetters()+1, h.DeadBytes+int64(len(event))
	if again {
		count, bytes = count-1, bytes-int64(len(old.Event))
	}
	if count > room.MaxEvents || bytes > room.MaxBytes {
		return false, nil
	}
	if again {
		if err := g.leave(place{false, position}, &old.entry); err != nil {
			return false, err
		}
	}
	dl := &deadLetter{entry: *e, Version: old.Version, Redrives: old.Redrives, At: g.c.Now, Event: event}
	dl.Key = ""
	g.enter(place{false, position}, &dl.entry, dead)
	g.store(place{false, position}, &dl.entry, dl)
	h.DeadBytes = bytes
	h.Totals.DeadLettered++
	return true, g.finish(position, e)
}
