package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

// named opens a lane and reads one of its messages, which must be exactly in
// the version the caller saw; 0 is not compared. Errors: NotFound,
// RevisionConflict.
func named(c *op.Ctx, queue, id string, stateVersion, generation uint64) (*lane, *message, error) {
	l, err := open(c, queue)
	if err != nil {
		return nil, nil, err
	}
	m, err := l.find(id)
	switch {
	case err != nil:
		return nil, nil, err
	case m == nil:
		return nil, nil, unknownMessage(id)
	case generation != 0 && generation != m.Generation:
		return nil, nil, moved("expectedDeliveryGeneration", "delivery generation", generation, m.Generation, m)
	case stateVersion != 0 && stateVersion != m.StateVersion:
		return nil, nil, moved("expectedStateVersion", "state version", stateVersion, m.StateVersion, m)
	}
	return l, m, nil
}

func unknownMessage(id string) *fault.Error {
	return fault.New(fault.NotFound, "unknown_message", "the queue holds no message with the id %q; it never did, or it was finished and its retention has passed", id)
}

func moved(field, what string, expected, actual uint64, m *message) *fault.Error {
	return fault.New(fault.RevisionConflict, "message_changed", "the message's %s is %d, not %d: it changed since it was read; inspect it and decide again", what, actual, expected).
		With(field, "%d", expected).With("actual", "%d", actual).With("state", "%s", m.State.name())
}

func wrongState(id string, m *message, why string) *fault.Error {
	return fault.New(fault.Conflict, "wrong_state", "the message %q is %s: %s", id, m.State.name(), why).
		With("state", "%s", m.State.name()).With("stateVersion", "%d", m.StateVersion)
}

// result is what a mutation of one message answers.
func result(l *lane, mu *api.Mutation, id string, m *message) (api.MutationResult, error) {
	return api.MutationResult{Kind: mu.Kind(), MessageID: id, StateVersion: m.StateVersion}, l.close()
}

// applyCancel withdraws a message in any state but a final one. A worker that
// holds it finds its lease gone.
func applyCancel(c *op.Ctx, _ int, mu *api.Mutation) (api.MutationResult, error) {
	req := mu.CancelMessage
	l, m, err := named(c, req.Queue, req.MessageID, req.ExpectedStateVersion, req.ExpectedDeliveryGeneration)
	if err != nil {
		return api.MutationResult{}, err
	}
	if m.State.finished() {
		return api.MutationResult{}, wrongState(req.MessageID, m, "a finished message cannot be cancelled")
	}

	// From here on it succeeds.
	l.move(req.MessageID, m, cancelled, 0)
	l.head.Totals.Cancelled++
	if err := admitDead(l, maxAdmitted); err != nil {
		return api.MutationResult{}, err
	}
	return result(l, mu, req.MessageID, m)
}

// applyReschedule moves the time of a message that waits.
func applyReschedule(c *op.Ctx, _ int, mu *api.Mutation) (api.MutationResult, error) {
	req := mu.RescheduleMessage
	l, m, err := named(c, req.Queue, req.MessageID, req.ExpectedStateVersion, req.ExpectedDeliveryGeneration)
	if err != nil {
		return api.MutationResult{}, err
	}
	if !m.State.waits() {
		return api.MutationResult{}, wrongState(req.MessageID, m, "only a scheduled or ready message can be rescheduled")
	}
	notBefore := int64(req.NotBefore)
	if err := checkTimes(notBefore, m.ExpiresAt); err != nil {
		return api.MutationResult{}, err
	}

	// From here on it succeeds.
	switch {
	case m.isExpired(c.Now):
		l.expire(req.MessageID, m)
	case m.exhausted(l.policy): // the limit was lowered, and the sweep is on its way
		l.bury(req.MessageID, m)
	case notBefore > c.Now:
		l.move(req.MessageID, m, scheduled, notBefore)
	default:
		l.move(req.MessageID, m, ready, 0) // a ready one keeps its place
	}
	return result(l, mu, req.MessageID, m)
}

// applyRedriveMutation delivers a dead letter again.
func applyRedriveMutation(c *op.Ctx, _ int, mu *api.Mutation) (api.MutationResult, error) {
	req := mu.RedriveMessage
	l, m, err := named(c, req.Queue, req.MessageID, req.ExpectedStateVersion, req.ExpectedDeliveryGeneration)
	if err == nil {
		err = redrive(l, req.MessageID, m, int64(req.NotBefore))
	}
	if err != nil {
		return api.MutationResult{}, err
	}
	out, err := result(l, mu, req.MessageID, m)
	out.InboxExpired = m.inboxExpired(c.Now)
	return out, err
}

// applyRedrive is queues.redrive.
func applyRedrive(c *op.Ctx, req *api.QueuesRedriveRequest) (*api.QueuesRedriveResponse, error) {
	l, m, err := named(c, req.Lane.Queue, req.MessageID, req.ExpectedStateVersion, 0)
	if err == nil {
		err = redrive(l, req.MessageID, m, int64(req.NotBefore))
	}
	if err != nil {
		return nil, err
	}
	return &api.QueuesRedriveResponse{
		MessageID: req.MessageID, State: m.State.name(),
		StateVersion: m.StateVersion, DeliveryGeneration: m.Generation, InboxExpired: m.inboxExpired(c.Now),
	}, l.close()
}
