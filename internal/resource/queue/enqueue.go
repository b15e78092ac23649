package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/table"
)

// applyEnqueue stores a message with its body, its index entry and the lane's
// counters.
func applyEnqueue(c *op.Ctx, i int, mu *api.Mutation) (api.MutationResult, error) {
	req := mu.Enqueue
	out := api.MutationResult{Kind: mu.Kind()}
	if err := dispatch.MayTake(&c.Scope); err != nil {
		return out, err
	}
	l, err := open(c, req.Queue)
	if err != nil {
		return out, err
	}
	out.MessageID = req.Message.MessageID
	if out.MessageID == "" {
		out.MessageID = c.DerivedID(i)
	}
	m, record, err := newMessage(l, &req.Message)
	if err != nil {
		return out, err
	}
	old, err := l.find(out.MessageID)
	if err != nil {
		return out, err
	}
	if old != nil {
		out.StateVersion, out.Duplicate = old.StateVersion, true
		return out, repeated(req, out.MessageID, old, m)
	}
	if err := checkNew(&req.Message, c.Now); err != nil {
		return out, err
	}
	place(l, m, int64(req.Message.NotBefore))
	m.Charge = chargeOf(l, out.MessageID, m, len(record))
	if err := checkRoom(l, m.Charge); err != nil {
		return out, err
	}

	// From here on it succeeds.
	store(l, out.MessageID, m, record)
	out.StateVersion = m.StateVersion
	return out, l.close()
}

// newMessage makes the metadata and the body's record of a message to enqueue.
// Error: PermissionDenied for a protected field.
func newMessage(l *lane, in *api.Message) (*message, []byte, error) {
	if in.Payload != nil {
		if err := access.CheckWrite(l.c.Principal, l.res, in.Payload); err != nil {
			return nil, nil, err
		}
	}
	b := bodyOf(in)
	content := b.content()
	record := encodeBody(make([]byte, 0, int(content)+len(in.ContentType)+16+10*len(b.Headers)), &b)
	priority := uint8(limits.PriorityDefault)
	if in.Priority != nil {
		priority = uint8(*in.Priority)
	}
	return &message{
		StateVersion: 1, Generation: 1, Priority: priority, EnqueuedAt: l.c.Now,
		PayloadBytes: uint64(len(b.Payload)), ContentBytes: content,
		ExpiresAt: int64(in.ExpiresAt), MaxAttempts: uint64(in.MaxAttempts),
		OrderingKey: in.OrderingKey, FairnessKey: in.FairnessKey,
		Digest: digestOf(record, in, priority),
	}, record, nil
}

// checkNew refuses a message that could never be delivered.
func checkNew(in *api.Message, now int64) error {
	if err := checkTimes(int64(in.NotBefore), int64(in.ExpiresAt)); err != nil {
		return err
	}
	if in.ExpiresAt != 0 && int64(in.ExpiresAt) <= now {
		return fault.Invalid("/expiresAt", "is not after the store's time, so the message could never be delivered").
			With("expiresAt", "%s", in.ExpiresAt).With("serverTime", "%s", api.Time(now))
	}
	return nil
}

// checkTimes refuses a notBefore that cannot be kept.
func checkTimes(notBefore, expiresAt int64) error {
	switch {
	case notBefore > int64(api.MaxTime) || expiresAt > int64(api.MaxTime):
		return fault.Invalid("/notBefore", "notBefore and expiresAt end at %s", api.MaxTime)
	case expiresAt != 0 && notBefore >= expiresAt:
		return fault.Invalid("/expiresAt", "must be later than notBefore").
			With("notBefore", "%s", api.Time(notBefore)).With("expiresAt", "%s", api.Time(expiresAt))
	}
	return nil
}

// repeated decides what an enqueue of a stored id means; nil is a duplicate.
func repeated(req *api.Enqueue, id string, old, m *message) error {
	if req.IfExists == api.IfExistsReturn && old.Digest == m.Digest {
		return nil
	}
	e := fault.New(fault.Conflict, "message_exists", "the queue remembers a message with the id %q; use another id, or ifExists: return for a repeat with equal content", id)
	if req.IfExists == api.IfExistsReturn {
		e = fault.New(fault.Conflict, "message_differs", "the queue remembers a message with the id %q and other content; use another id", id)
	}
	return e.With("state", "%s", old.State.name()).With("stateVersion", "%d", old.StateVersion)
}

// place gives a new message its sequence numbers and its first state.
func place(l *lane, m *message, notBefore int64) {
	m.Seq = l.head.Seq + 1
	m.State = ready
	m.ReadySeq = l.head.ReadySeq + 1
	if notBefore > l.c.Now {
		m.State, m.ReadySeq, m.NotBefore = scheduled, 0, notBefore
	}
}

// chargeOf is what a message counts toward its lane's quotas, from enqueueing
// until it is finished: the exact bytes, keys and records, of the rows that
// enqueueing it writes — message, body, ready or scheduled entry, expiring
// entry. The message's record holds the charge itself; its length is counted
// too.
func chargeOf(l *lane, id string, m *message, bodyBytes int) uint64 {
	entry := idEntry{id}
	holders := 1 // rows that hold the charge, which is 0 and takes one byte now
	n := size(l, &messages, messageKey{l.owner, id}, m) + bodyKeyBytes + bodyBytes
	if m.State == scheduled {
		n += size(l, &schedules, timeKey{l.owner, m.NotBefore, m.Seq}, &entry)
	} else {
		holders = 2
		n += size(l, &readies, readyKey{Owner: l.owner}, &readyEntry{ID: id, Content: m.ContentBytes, ExpiresAt: m.ExpiresAt})
	}
	if m.ExpiresAt != 0 {
		n += size(l, &expiries, timeKey{l.owner, m.ExpiresAt, m.Seq}, &entry)
	}
	total := uint64(n)
	for {
		next := uint64(n + holders*(uvarintBytes(total)-1))
		if next == total {
			return total
		}
		total = next
	}
}

// bodyKeyBytes is the length of every key of table bodies.
const bodyKeyBytes = 1 + table.OwnerBytes + 8

// size is table.Size without taking memory.
func size[K, V any](l *lane, t *table.Table[K, V], k K, v *V) int {
	l.key = t.Encode(t.Key(append(l.key[:0], byte(t.ID)), k), v)
	return len(l.key)
}

// uvarintBytes is the length of v as a varint.
func uvarintBytes(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}

// checkRoom refuses a message the lane's quotas have no place for.
func checkRoom(l *lane, charge uint64) error {
	h, p := &l.head, l.policy
	if h.stored() >= p.MaxMessages {
		return fault.New(fault.ResourceExhausted, "queue_full", "queue %q holds %d unfinished messages here and its policy allows %d (maxMessages); let workers finish some, cancel some, or raise the limit", l.res.Name, h.stored(), p.MaxMessages).
			With("limit", "maxMessages").With("max", "%d", p.MaxMessages).With("used", "%d", h.stored())
	}
	if h.StoredBytes+int64(charge) > p.MaxBytes {
		return fault.New(fault.ResourceExhausted, "queue_full", "queue %q stores %d bytes here, this message takes %d more, and its policy allows %d (maxBytes); let workers finish some, cancel some, or raise the limit", l.res.Name, h.StoredBytes, charge, p.MaxBytes).
			With("limit", "maxBytes").With("max", "%d", p.MaxBytes).With("used", "%d", h.StoredBytes).With("needed", "%d", charge)
	}
	return nil
}

// store writes a placed message.
func store(l *lane, id string, m *message, record []byte) {
	h := &l.head
	h.Seq = m.Seq
	if m.State == ready {
		h.ReadySeq = m.ReadySeq
	}
	h.StoredBytes += int64(m.Charge)
	h.Totals.Enqueued++
	l.enter(id, m, m.State)
	if m.ExpiresAt != 0 {
		l.expiry(id, m, true)
	}
	insert(l, &messages, messageKey{l.owner, id}, m)
	l.key = bodies.Key(append(l.key[:0], byte(bodies.ID)), seqKey{l.owner, m.Seq})
	l.c.Tx.Insert(l.key, record)
}
