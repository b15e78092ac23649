package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// lane is one lane open for one command or mutation: a copy of its head to
// change, and what is written once however many messages it concerns. Nothing
// of it outlives close.
type lane struct {
	c      *op.Ctx
	res    *api.Resource // shared: never changed
	policy *api.QueuePolicy
	owner  table.Owner
	before head // as it was opened
	head   head
	key    []byte // reused for every key

	woken   int           // messages that became ready
	gone    []goneBatch   // places to clear in lease rows
	done    [3]doneGroup  // ids to list in finished rows: acked, expired, cancelled
	renewed []*renewBatch // lease rows to write for renewals
	alone   bool          // the command renews one message, so a row of renewals lists one
	again   bool          // bounded work was left over: come back at once
}

type doneGroup struct {
	state state
	ids   []string
}

// open finds the lane of a queue in the command's partition.
func open(c *op.Ctx, queue string) (*lane, error) {
	res, owner, err := directory.Resolve(&c.Scope, queue, api.KindQueue)
	if err != nil {
		return nil, err
	}
	return openOwner(c, res, owner)
}

func openOwner(c *op.Ctx, res *api.Resource, owner table.Owner) (*lane, error) {
	h, err := heads.Shared(c.Tx, owner)
	if err != nil {
		return nil, err
	}
	l := &lane{c: c, res: res, policy: res.Queue, owner: owner}
	if h != nil {
		l.before, l.head = *h, *h
	}
	return l, nil
}

// close writes what the messages of the command share: lease rows, finished
// rows, the head, the due row. A lane that did not change is not written.
func (l *lane) close() error {
	if err := clearLeases(l); err != nil {
		return err
	}
	writeRenewals(l)
	writeFinished(l)
	h := &l.head
	h.normalize()
	if when := l.nextDue(); when != 0 && (h.Armed == 0 || when < h.Armed) {
		table.ArmBy(l.c.Tx, l.owner.Shard, table.DueLane, l.owner.Append(nil), &h.Armed, when)
	}
	if *h != l.before {
		heads.Put(l.c.Tx, l.owner, h)
	}
	if n := l.woken + l.roomMade(); n > 0 {
		l.c.Wake(wakeKey(l.owner), n)
	}
	return nil
}

// normalize gives equal states equal bytes.
func (h *head) normalize() {
	zero := func(v *int64, when bool) {
		if when {
			*v = 0
		}
	}
	zero(&h.First.Scheduled, h.Counts[scheduled] == 0)
	zero(&h.First.Lease, h.Counts[leased] == 0)
	zero(&h.First.Expiry, h.ExpiringRows == 0)
	zero(&h.First.Finished, h.FinishedRows == 0)
	for p := range h.Ready {
		if h.Ready[p].Count == 0 {
			h.Ready[p].Floor = 0
		}
	}
}

// nextDue is the earliest instant at which something of the lane happens by
// itself; 0 is never.
func (l *lane) nextDue() int64 {
	if l.again {
		return l.c.Now
	}
	f := &l.head.First
	next := leasing.Earlier(leasing.Earlier(f.Scheduled, f.Lease), f.Expiry)
	if f.Finished != 0 {
		next = leasing.Earlier(next, leasing.After(f.Finished, l.policy.FinishedRetentionSeconds*1000))
	}
	return next
}

// roomMade is how many waiting receives may go on because leases ended while
// the lane had leased all it may.
func (l *lane) roomMade() int {
	if l.head.Counts[ready] == 0 || !nearlyFull(&l.before, l.policy) {
		return 0
	}
	return int(max(0, min(l.before.Counts[leased]-l.head.Counts[leased], l.head.Counts[ready])))
}

// full says that nothing more may be leased now.
func full(h *head, p *api.QueuePolicy) bool {
	return h.Counts[leased] > 0 && (h.Counts[leased] >= p.MaxInFlightMessages || h.InFlightBytes >= p.MaxInFlightBytes)
}

// nearlyFull says that the next message may not fit into what may be leased,
// whatever its size.
func nearlyFull(h *head, p *api.QueuePolicy) bool {
	return full(h, p) || (h.Counts[leased] > 0 && p.MaxInFlightBytes-h.InFlightBytes < largestCharge)
}

// largestCharge is more than any message can count toward a quota.
const largestCharge = limits.PayloadBytes + limits.HeaderBytes + 64<<10

// wakeKey is what receives of a lane wait for, beside changes of its queue.
func wakeKey(owner table.Owner) string { return "q" + string(owner.Append(nil)) }

// find reads a message; nil when there is none.
func (l *lane) find(id string) (*message, error) {
	l.key = messages.Key(append(l.key[:0], byte(messages.ID)), messageKey{l.owner, id})
	b, ok, err := l.c.Tx.Get(l.key)
	if err != nil || !ok {
		return nil, err
	}
	m := new(message)
	if err := decodeMessage(b, m); err != nil {
		return nil, &table.Damage{Table: messages.Name, Key: append([]byte(nil), l.key...), Cause: err}
	}
	return m, nil
}

// listed reads a message that an index lists; its absence is damage.
func (l *lane) listed(id string) (*message, error) {
	m, err := l.find(id)
	if err == nil && m == nil {
		err = &table.Damage{Table: messages.Name, Key: messages.Bytes(messageKey{l.owner, id}), Cause: errUnlisted}
	}
	return m, err
}

// put and insert write a row of the lane; insert where its key is known to be
// new.
func put[K, V any](l *lane, t *table.Table[K, V], k K, v *V) {
	l.key = t.Key(append(l.key[:0], byte(t.ID)), k)
	l.c.Tx.Put(l.key, t.Encode(make([]byte, 0, 112), v))
}

func insert[K, V any](l *lane, t *table.Table[K, V], k K, v *V) {
	l.key = t.Key(append(l.key[:0], byte(t.ID)), k)
	l.c.Tx.Insert(l.key, t.Encode(make([]byte, 0, 112), v))
}

func remove[K, V any](l *lane, t *table.Table[K, V], k K) {
	l.key = t.Key(append(l.key[:0], byte(t.ID)), k)
	l.c.Tx.Delete(l.key)
}

// listFinished notes an id for the finished row of its state.
func (l *lane) listFinished(id string, s state) {
	for i := range l.done {
		g := &l.done[i]
		if g.state == 0 {
			g.state = s
		}
		if g.state == s {
			g.ids = append(g.ids, id)
			return
		}
	}
}

func writeFinished(l *lane) {
	h := &l.head
	for _, g := range l.done {
		if len(g.ids) == 0 {
			continue
		}
		h.FinishedSeq++
		insert(l, &finisheds, timeKey{l.owner, l.c.Now, h.FinishedSeq}, &batch{State: g.state, IDs: g.ids})
		h.FinishedRows++
		h.First.Finished = leasing.Earlier(h.First.Finished, l.c.Now)
	}
}
