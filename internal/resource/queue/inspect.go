package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/table"
)

// seen is one lane as a query sees it.
type seen struct {
	v     *op.View
	res   *api.Resource
	owner table.Owner
	head  head
}

func look(v *op.View, queue string) (*seen, error) {
	res, owner, err := directory.Resolve(&v.Scope, queue, api.KindQueue)
	if err != nil {
		return nil, err
	}
	h, _, err := heads.Get(v.R, owner)
	return &seen{v, res, owner, h}, err
}

// find reads a message; NotFound when there is none.
func (s *seen) find(id string) (*message, error) {
	m, ok, err := messages.Get(s.v.R, messageKey{s.owner, id})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, unknownMessage(id)
	}
	return &m, nil
}

// info is everything known about a message but its content.
func (s *seen) info(id string, m *message) api.MessageInfo {
	return api.MessageInfo{
		Queue: s.res.Name, MessageID: id, State: m.State.name(), StateVersion: m.StateVersion,
		DeliveryGeneration: m.Generation, LeaseVersion: m.LeaseVersion,
		Attempts: int64(m.Attempts), Failures: int64(m.Failures), LeaseLosses: int64(m.LeaseLosses),
		MaxAttempts: int64(m.maxAttempts(s.res.Queue)), Priority: int64(m.Priority), ReadySequence: m.ReadySeq,
		OrderingKey: m.OrderingKey, FairnessKey: m.FairnessKey,
		EnqueuedAt: api.Time(m.EnqueuedAt), NotBefore: api.Time(m.NotBefore), ExpiresAt: api.Time(m.ExpiresAt),
		LeaseOwner: m.Lease.Owner, SessionID: m.Lease.Session, LeaseUntil: api.Time(m.Lease.Until), FirstLeasedAt: api.Time(m.Lease.First),
		FinishedAt: api.Time(m.FinishedAt), LastFailure: m.LastFailure,
		PayloadBytes: int64(m.PayloadBytes), StoredBytes: s.storedBytes(m),
	}
}

// storedBytes is what the message counts toward the quota now: nothing once it
// is finished.
func (s *seen) storedBytes(m *message) int64 {
	if m.State.finished() {
		return 0
	}
	return int64(m.Charge)
}

func runInspect(v *op.View, req *api.QueuesInspectRequest) (*api.QueuesInspectResponse, error) {
	s, err := look(v, req.Lane.Queue)
	if err != nil {
		return nil, err
	}
	m, err := s.find(req.MessageID)
	if err != nil {
		return nil, err
	}
	out := &api.QueuesInspectResponse{Message: s.info(req.MessageID, m)}
	if !req.IncludePayload || m.State.finished() {
		return out, nil
	}
	b, ok, err := bodies.Get(v.R, seqKey{s.owner, m.Seq})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, bodyMissing(s.res.Name, req.MessageID)
	}
	i := &out.Message
	i.Headers, i.ContentType = b.headers(), b.ContentType
	if !b.JSON {
		i.PayloadBase64 = b.Payload
		return out, nil
	}
	i.Payload, i.Redacted, err = access.Project(v.Principal, s.res, b.Payload)
	return out, err
}

// runStatus sums up a lane from its head.
func runStatus(v *op.View, req *api.QueuesStatusRequest) (*api.QueuesStatusResponse, error) {
	s, err := look(v, req.Lane.Queue)
	if err != nil {
		return nil, err
	}
	h := &s.head
	out := &api.QueuesStatusResponse{
		Counts: api.QueueCounts{
			Scheduled: h.Counts[scheduled], Ready: h.Counts[ready], Leased: h.Counts[leased], Acked: h.Counts[acked],
			DeadLettered: h.Counts[dead], PendingDeadLetter: h.Counts[pendingDead],
			Expired: h.Counts[expired], Cancelled: h.Counts[cancelled],
		},
		StoredMessages: h.stored(), StoredBytes: h.StoredBytes,
		InFlightMessages: h.Counts[leased], InFlightBytes: h.InFlightBytes, DeadLetterBytes: h.DeadBytes,
		Totals: api.QueueTotals(h.Totals),
		Policy: *s.res.Queue, Paused: s.res.Paused,
	}
	_, e, err := firstReady(&v.Scope, s.owner, h)
	if err != nil {
		return nil, err
	}
	if e != nil {
		m, err := s.find(e.ID)
		if err != nil {
			return nil, err
		}
		out.OldestReadyAt = api.Time(m.EnqueuedAt)
		out.OldestReadyAgeMillis = max(0, v.Now-m.EnqueuedAt)
	}
	due, err := nextDue(&v.Scope, s.owner, h)
	out.NextDueAt = api.Time(due)
	return out, err
}
