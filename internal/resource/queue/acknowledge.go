package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
)

// Taken is one delivery that a processing command names with its token.
type Taken struct {
	Claims
	Owner table.Owner // the lane
	queue string
}

// Take finds the lane and what a verified token claims in it. It reads no
// message. Errors: those of resolving the queue; TokenInvalidated,
// PermissionDenied or Validation when the token is not for this lane and caller.
func Take(c *op.Ctx, queue, text string) (Taken, error) {
	_, owner, err := directory.Resolve(&c.Scope, queue, api.KindQueue)
	if err != nil {
		return Taken{}, err
	}
	want := holder(owner, c.Principal)
	x, err := scoped(text, &want)
	return Taken{x, owner, queue}, err
}

// VerifyToken refuses, at the door, a delivery token that does not hold. Errors:
// Validation, TokenInvalidated for another incarnation of the store.
func VerifyToken(d *op.Door, text string) error {
	_, err := d.Tokens.Open(token.Delivery, text)
	return err
}

// Acked is where a message stands.
type Acked struct {
	State        api.MessageState
	StateVersion uint64
}

// Acknowledge finishes a taken delivery. Errors: NotFound, StaleLease,
// LeaseExpired; then nothing has changed.
func Acknowledge(c *op.Ctx, t *Taken) (Acked, error) {
	l, err := open(c, t.queue)
	if err != nil {
		return Acked{}, err
	}
	m, err := l.find(t.MessageID)
	if err != nil {
		return Acked{}, err
	}
	if err := live(&t.Claims, m, c.Now); err != nil {
		return Acked{}, err
	}
	ack(l, t.MessageID, m)
	return Acked{m.State.name(), m.StateVersion}, l.close()
}

// AcknowledgeIfLive is Acknowledge for a delivery whose work is known to be
// done: a lease that does not hold any more changes nothing, and the answer is
// where the message stands (acked, with version 0, once it is forgotten).
func AcknowledgeIfLive(c *op.Ctx, t *Taken) (Acked, error) {
	a, err := Acknowledge(c, t)
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.StaleLease, fault.LeaseExpired:
	default:
		return a, err
	}
	m, ok, err := messages.Get(c.Tx, messageKey{t.Owner, t.MessageID})
	if err != nil || !ok {
		return Acked{State: api.StateAcked}, err
	}
	return Acked{m.State.name(), m.StateVersion}, nil
}
