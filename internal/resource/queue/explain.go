package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/table"
)

// maxReadyBefore is how far explain counts the messages that come first.
const maxReadyBefore = 1_000

// runExplain says why a message is not being delivered. It looks at the same
// facts a receive would, in the same order.
func runExplain(v *op.View, req *api.QueuesExplainRequest) (*api.QueuesExplainResponse, error) {
	s, err := look(v, req.Lane.Queue)
	if err != nil {
		return nil, err
	}
	m, err := s.find(req.MessageID)
	if err != nil {
		return nil, err
	}
	out := &api.QueuesExplainResponse{MessageID: req.MessageID, State: m.State.name()}
	switch m.State {
	case scheduled, ready:
		err = s.explainWaiting(m, out)
	case leased:
		s.explainLeased(m, out)
	case dead, pendingDead:
		explainDead(m, out)
	default:
		out.Reason = string(m.State.name())
		out.Detail = "It reached this final state at " + api.Time(m.FinishedAt).String() + " and is never delivered again."
	}
	return out, err
}

func (s *seen) explainWaiting(m *message, out *api.QueuesExplainResponse) error {
	now, p := s.v.Now, s.res.Queue
	d, err := dispatch.State(s.v.R, s.v.Space.Shard)
	if err != nil {
		return err
	}
	switch {
	case d.Paused:
		out.Reason, out.Detail = string(api.ReasonDispatchPaused), "The whole store is paused: every receive is refused."
		out.ChangedBy = "admin.dispatch with state running"
	case m.isExpired(now):
		out.Reason, out.Detail = "expired", "Its expiresAt has passed; the next sweep ends it."
	case m.exhausted(p):
		out.Reason, out.Detail = "attemptsExhausted", "It has used every attempt the policy allows now; the next tick, or the next receive, makes it a dead letter."
		out.ChangedBy = "raising maxAttempts with resources.configure"
	case m.State == scheduled && m.NotBefore > now:
		out.Reason, out.Until = "scheduled", api.Time(m.NotBefore)
		out.Detail = "It waits for its time: a notBefore, or the wait after a failed attempt."
		out.ChangedBy = "rescheduleMessage"
	case s.res.Paused:
		out.Reason, out.Detail = "paused", "The queue is paused: receives are refused."
		out.ChangedBy = "resources.configure with paused: false"
	case full(&s.head, p) || (s.head.Counts[leased] > 0 && int64(m.Charge) > p.MaxInFlightBytes-s.head.InFlightBytes):
		out.Reason, out.Detail = "inFlightLimit", "As much is leased as maxInFlightMessages and maxInFlightBytes allow."
		out.ChangedBy = "workers finishing what they hold, or a higher limit"
		at, err := firstAt(&s.v.Scope, &leases, s.owner, s.head.First.Lease)
		out.Until = api.Time(at)
		return err
	default:
		out.Deliverable, out.Reason = true, "ready"
		out.Detail = "The next receive that reaches it in order may claim it."
		out.ChangedBy = "queues.receive"
		n, err := s.readyBefore(m)
		out.ReadyBefore = n
		return err
	}
	return nil
}

// readyBefore counts the ready messages that are claimed first, up to
// maxReadyBefore. A scheduled one that is due will come last of its priority.
func (s *seen) readyBefore(m *message) (int64, error) {
	n := int64(0)
	for p := range m.Priority {
		n += s.head.Ready[p].Count
	}
	own := s.head.Ready[m.Priority]
	if m.State == scheduled {
		return min(n+own.Count, maxReadyBefore), nil
	}
	if n >= maxReadyBefore {
		return maxReadyBefore, nil
	}
	prefix := codec.AppendUint8(s.owner.Append(nil), m.Priority)
	from := appendReady(nil, readyKey{Owner: s.owner, Priority: m.Priority, Seq: own.Floor})
	err := readies.Scan(s.v.R, table.Range{Prefix: prefix, From: from}, func(k readyKey, _ *readyEntry) (bool, error) {
		if k.Seq >= m.ReadySeq {
			return false, nil
		}
		n++
		return n < maxReadyBefore, nil
	})
	return n, err
}

func (s *seen) explainLeased(m *message, out *api.QueuesExplainResponse) {
	out.Reason, out.Until = "leased", api.Time(m.Lease.Until)
	out.Detail = "A worker holds it since " + api.Time(m.Lease.First).String() + "; when the lease ends it waits as the retry policy says."
	out.ChangedBy = "the holder's ack, nack or release"
	if m.Lease.Until <= s.v.Now {
		out.Reason, out.Until = "leaseExpired", 0
		out.Detail = "Its lease ended; the next receive or tick takes it back and counts a lost lease."
		out.ChangedBy = "queues.receive"
	}
}

func explainDead(m *message, out *api.QueuesExplainResponse) {
	out.Reason = string(m.State.name())
	out.Detail = "It is put aside since " + api.Time(m.FinishedAt).String() + ": its attempts were used up, or a worker refused it for good. lastFailure says why, if it was told."
	if m.State == pendingDead {
		out.Detail += " It waits for room among the dead letters."
	}
	out.ChangedBy = "queues.redrive, or cancelMessage to drop it"
}
