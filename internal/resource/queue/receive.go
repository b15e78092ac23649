package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// applyReceive claims messages: what logged time has brought about first, then
// the ready ones in order.
func applyReceive(c *op.Ctx, req *api.QueuesReceiveRequest) (*api.QueuesReceiveResponse, error) {
	l, err := open(c, req.Lane.Queue)
	if err != nil {
		return nil, err
	}
	if err := mayReceive(l, req); err != nil {
		return nil, err
	}
	resp := &api.QueuesReceiveResponse{Deliveries: []api.Delivery{}}
	lost, due, err := sweep(l)
	if err != nil {
		return nil, err
	}
	if err := admitDead(l, maxAdmitted); err != nil {
		return nil, err
	}
	found, err := search(l, req)
	if err != nil {
		return nil, err
	}
	resp.Examined = api.ReceiveExamined{Scheduled: int64(due), Expired: int64(lost), Ready: int64(found.examined)}
	if found.tooLarge != nil && len(found.claims) == 0 {
		return nil, tooLarge(found.tooLarge, req.MaxBytes)
	}

	// From here on it succeeds.
	if err := settle(l, found); err != nil {
		return nil, err
	}
	if resp.Deliveries, err = claim(l, req, found.claims); err != nil {
		return nil, err
	}
	if len(resp.Deliveries) == 0 {
		if err := explainEmpty(l, found, resp); err != nil {
			return nil, err
		}
	} else if l.head.Counts[ready] > 0 && !full(&l.head, l.policy) {
		l.woken = max(l.woken, 1) // the next who waits may have what this one left
	}
	return resp, l.close()
}

func mayReceive(l *lane, req *api.QueuesReceiveRequest) error {
	if err := dispatch.MayDeliver(&l.c.Scope); err != nil {
		return err
	}
	if l.res.Paused {
		return pausedQueue(l.res)
	}
	return terms(l.policy).Check(req.LeaseSeconds)
}

// terms are what the policy says of leases.
func terms(p *api.QueuePolicy) leasing.Terms {
	return leasing.Terms{Of: "queue", What: "message", MaxSeconds: p.MaxLeaseSeconds, MaxAgeSeconds: p.MaxLeaseAgeSeconds}
}

func pausedQueue(r *api.Resource) error {
	return fault.New(fault.DispatchPaused, "queue_paused", "queue %q is paused: nothing is delivered until it is configured with paused: false; acknowledgements and renewals go on", r.Name)
}

func tooLarge(v *readyEntry, maxBytes int64) error {
	return fault.New(fault.ResourceExhausted, "message_too_large", "the next message %q has %d bytes of payload and headers and the request allows %d (maxBytes); ask for more bytes", v.ID, v.Content, maxBytes).
		With("messageId", "%s", v.ID).With("bytes", "%d", v.Content).With("maxBytes", "%d", maxBytes).
		WithRetry(fault.RetryAfterChange)
}

// found is what a walk over the ready entries came to.
type found struct {
	claims    []found1 // to deliver
	expired   []found1 // met on the way, their time has passed
	exhausted []found1 // met on the way, no claim is left by the policy in force
	examined  int
	limited   bool        // more may not be leased now
	scanned   bool        // the ceiling of examined entries was met
	tooLarge  *readyEntry // the first that did not fit into maxBytes
}

type found1 struct {
	id string
	m  *message
}

// search walks the ready entries from the first live one and picks what the
// request may have. It reads the message of every entry it takes, and changes
// nothing but the floors: every entry passed is one that settle or claim
// removes.
func search(l *lane, req *api.QueuesReceiveRequest) (*found, error) {
	f := &found{}
	room := picker{
		lane: l, found: f,
		messages: min(req.MaxMessages, l.policy.MaxInFlightMessages-l.head.Counts[leased]),
		bytes:    uint64(req.MaxBytes),
		inFlight: l.policy.MaxInFlightBytes - l.head.InFlightBytes,
		alone:    l.head.Counts[leased] == 0,
	}
	if room.messages <= 0 {
		f.limited = true
		return f, nil
	}
	f.claims = make([]found1, 0, min(room.messages, l.head.Counts[ready]))
	for p := range l.head.Ready {
		r := &l.head.Ready[p]
		if r.Count == 0 {
			continue
		}
		floor, more, err := room.walk(uint8(p), r.Floor)
		if err != nil {
			return nil, err
		}
		r.Floor = floor
		if !more {
			break
		}
	}
	return f, nil
}

// picker is what is left of a request's and the lane's allowances.
type picker struct {
	lane     *lane
	found    *found
	messages int64
	bytes    uint64
	inFlight int64
	alone    bool // nothing is leased: one message may go beyond inFlight, or it would be stuck for good
}

// walk goes over the entries of one priority and returns the first place it has
// not emptied, and whether to go on with the next priority.
func (p *picker) walk(priority uint8, floor uint64) (next uint64, more bool, err error) {
	l := p.lane
	prefix := codec.AppendUint8(l.owner.Append(nil), priority)
	from := appendReady(nil, readyKey{Owner: l.owner, Priority: priority, Seq: floor})
	next, more = floor, true
	err = readies.Scan(l.c.Tx, table.Range{Prefix: prefix, From: from}, func(k readyKey, v *readyEntry) (bool, error) {
		next = k.Seq
		p.found.examined++
		taken, err := p.take(v)
		if err != nil || !taken {
			more = false
			return false, err
		}
		next = k.Seq + 1
		more = p.messages > 0
		if more && p.found.examined >= limits.ScanReady {
			p.found.scanned, more = true, false
		}
		return more, nil
	})
	return next, more, err
}

// take decides about one entry; false means that it stays and the walk ends.
func (p *picker) take(v *readyEntry) (bool, error) {
	l, f := p.lane, p.found
	gone := v.ExpiresAt != 0 && v.ExpiresAt <= l.c.Now
	if !gone {
		switch {
		case v.Content > p.bytes:
			f.tooLarge = v
			return false, nil
		case int64(v.Charge) > p.inFlight && !(p.alone && len(f.claims) == 0):
			f.limited = true
			return false, nil
		}
	}
	m, err := l.listedAs(v.ID, ready)
	if err != nil {
		return false, err
	}
	switch {
	case gone:
		f.expired = append(f.expired, found1{v.ID, m})
	case m.exhausted(l.policy):
		f.exhausted = append(f.exhausted, found1{v.ID, m})
	default:
		f.claims = append(f.claims, found1{v.ID, m})
		p.messages--
		p.bytes -= v.Content
		p.inFlight -= int64(v.Charge)
	}
	return true, nil
}

// settle ends what the walk met that cannot be delivered.
func settle(l *lane, f *found) error {
	for _, x := range f.expired {
		l.expire(x.id, x.m)
	}
	for _, x := range f.exhausted {
		l.bury(x.id, x.m)
	}
	return nil
}

// claim leases the messages, in one lease row, and renders them.
func claim(l *lane, req *api.QueuesReceiveRequest, claims []found1) ([]api.Delivery, error) {
	out := make([]api.Delivery, len(claims))
	if len(claims) == 0 {
		return out, nil
	}
	h, who := &l.head, holder(l.owner, l.c.Principal)
	h.Batch++
	terms := lease{
		First: l.c.Now, Until: leasing.After(l.c.Now, req.LeaseSeconds*1000), Batch: h.Batch, Size: uint64(len(claims)),
		Epoch: l.c.Principal.PolicyEpoch, Owner: l.c.Principal.ID, Session: req.SessionID,
	}
	row := batch{IDs: make([]string, len(claims))}
	for i, x := range claims {
		terms.Index = uint64(i)
		x.m.Lease = terms
		x.m.Attempts++
		x.m.LeaseVersion = terms.Batch
		l.move(x.id, x.m, leased, 0)
		row.IDs[i] = x.id
		if err := render(l, &out[i], x.id, x.m, &who); err != nil {
			return nil, err
		}
	}
	insert(l, &leases, timeKey{l.owner, terms.Until, terms.Batch}, &row)
	h.Totals.Delivered += int64(len(claims))
	l.woken = max(0, l.woken-len(claims)) // what this receive took of what it made ready
	return out, nil
}

// render fills a delivery from the message and its body.
func render(l *lane, d *api.Delivery, id string, m *message, who *Claims) error {
	b, ok, err := bodies.Get(l.c.Tx, seqKey{l.owner, m.Seq})
	if err != nil {
		return err
	}
	if !ok {
		return bodyMissing(l.res.Name, id)
	}
	*d = api.Delivery{
		MessageID: id, Token: who.unsealed(id, m), Attempt: int64(m.Attempts), LeaseUntil: api.Time(m.Lease.Until),
		DeliveryGeneration: m.Generation, LeaseVersion: m.LeaseVersion,
		OrderingKey: m.OrderingKey, EnqueuedAt: api.Time(m.EnqueuedAt),
		ContentType: b.ContentType, Headers: b.headers(),
	}
	if !b.JSON {
		d.PayloadBase64 = b.Payload
		return nil
	}
	d.Payload, d.Redacted, err = access.Project(l.c.Principal, l.res, b.Payload)
	return err
}

// bodyMissing is damage: it stops the shard where it is met. Once the store is
// open again, cancelling the message lets the others through.
func bodyMissing(queue, id string) error {
	return fault.New(fault.Corruption, "body_missing", "the content of message %q in queue %q is not stored; check the store, and cancel the message to let the others through", id, queue).
		With("queue", "%s", queue).With("messageId", "%s", id)
}
