package queue

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
)

// A message is put aside when its last attempt fails, and every step it takes
// asks the limit in force. So only a limit that is lowered leaves messages
// waiting that have no attempt left: each shard then looks through the lanes of
// the queue, in bounded steps, and puts them aside without any worker.

// limitSweep is how far a shard has looked through the lanes of one queue since
// its limit was lowered.
type limitSweep struct {
	Partition [16]byte   `cbor:"1,keyasint"` // to go on with
	Place     sweepPlace `cbor:"2,keyasint"` // in its lane
	Armed     int64      `cbor:"3,keyasint"`
}

// sweepPlace is where to go on in a lane: among the scheduled messages, or among the
// ready ones of one priority.
type sweepPlace struct {
	Ready    bool   `cbor:"1,keyasint,omitempty"`
	Priority uint8  `cbor:"2,keyasint,omitempty"`
	When     int64  `cbor:"3,keyasint,omitempty"`
	Seq      uint64 `cbor:"4,keyasint,omitempty"`
}

// limitSweeps holds a row for a queue while its lanes are looked through. It
// belongs to the shard, so it stands in the zero partition.
var limitSweeps = table.Table[table.Owner, limitSweep]{
	ID: table.LimitSweep, Name: "limitSweep",
	Key:      func(dst []byte, o table.Owner) []byte { return o.Append(dst) },
	ParseKey: table.ReadOwner, Encode: table.EncodeCBOR[limitSweep], Decode: table.DecodeCBOR[limitSweep],
}

// queueKey is what the receives of all lanes of a queue in a shard wait for: a
// change of its definition that they must hear of.
func queueKey(owner table.Owner) string {
	return "Q" + string(table.Owner{Space: table.Space{Shard: owner.Shard}, Resource: owner.Resource}.Append(nil))
}

// everyone is the count of a wake-up that serves all who wait.
const everyone = 1 << 20

// wakesAll says that receives which found nothing may find something by the new
// definition, or shall be told that they will not.
func wakesAll(old, now *api.Resource) bool {
	return now.Paused != old.Paused || now.Queue.MaxInFlightMessages > old.Queue.MaxInFlightMessages ||
		now.Queue.MaxInFlightBytes > old.Queue.MaxInFlightBytes
}

// changed wakes who waits when a queue may deliver more, or no more. It begins a
// sweep when the limit of attempts was lowered; one under way begins anew.
func changed(c *op.Ctx, old, now *api.Resource) error {
	if wakesAll(old, now) {
		c.Wake(queueKey(table.Owner{Space: c.ShardSpace(), Resource: now.ID}), everyone)
	}
	if now.Queue.MaxAttempts >= old.Queue.MaxAttempts {
		return nil
	}
	owner := table.Owner{Space: c.ShardSpace(), Resource: now.ID}
	s, _, err := limitSweeps.Get(c.Tx, owner)
	if err != nil {
		return err
	}
	s.Partition, s.Place = [16]byte{}, sweepPlace{}
	table.ArmBy(c.Tx, owner.Shard, table.DueLimit, owner.Append(nil), &s.Armed, c.Now)
	limitSweeps.Put(c.Tx, owner, &s)
	return nil
}

// applyLimit goes on with a sweep. It looks at most at budget partitions and
// messages together.
func applyLimit(c *op.Ctx, ownerKey []byte, budget int) error {
	r := codec.NewKeyReader(ownerKey)
	owner := table.ReadOwner(&r)
	if err := r.End(); err != nil {
		return err
	}
	s, ok, err := limitSweeps.Get(c.Tx, owner)
	if err != nil || !ok {
		return err
	}
	res, err := directory.ByID(c.Tx, owner.Shard, owner.Resource)
	if err != nil {
		return err
	}
	more := false
	if res != nil { // else it was deleted
		if more, err = s.goOn(c, res, budget); err != nil {
			return err
		}
	}
	if !more {
		limitSweeps.Delete(c.Tx, owner)
		return nil
	}
	s.Armed = 0
	table.Arm(c.Tx, owner.Shard, table.DueLimit, ownerKey, &s.Armed, c.Now)
	limitSweeps.Put(c.Tx, owner, &s)
	return nil
}

// goOn looks through lanes until the budget is used up, and says whether any is
// left.
func (s *limitSweep) goOn(c *op.Ctx, res *api.Resource, budget int) (more bool, err error) {
	var spaces []table.Space // one more than can be looked at: there it goes on
	err = partitions.Each(c.Tx, c.Space.Shard, s.Partition, func(p table.Space, _ api.PartitionRef) (bool, error) {
		spaces = append(spaces, p)
		return len(spaces) <= budget, nil
	})
	if err != nil {
		return false, err
	}
	for _, p := range spaces {
		if p.Partition != s.Partition {
			s.Partition, s.Place = p.Partition, sweepPlace{}
		}
		if budget <= 0 {
			return true, nil
		}
		l, err := openOwner(c, res, table.Owner{Space: p, Resource: res.ID})
		if err != nil {
			return false, err
		}
		n, rest, err := s.Place.sweep(l, budget)
		if err == nil {
			err = l.close()
		}
		if err != nil || rest {
			return rest, err
		}
		budget -= max(n, 1) // a lane with nothing waiting counts, too
	}
	return false, nil
}

// sweep puts aside the waiting messages of a lane that have no attempt left, from
// the place on. It looks at n messages, at most budget; rest says that the place
// is not the end.
func (at *sweepPlace) sweep(l *lane, budget int) (n int, rest bool, err error) {
	if !at.Ready {
		if n, rest, err = at.inScheduled(l, budget); err != nil || rest {
			return n, rest, err
		}
		*at = sweepPlace{Ready: true}
	}
	for ; at.Priority < priorities; at.Priority, at.Seq = at.Priority+1, 0 {
		m, rest, err := at.inReady(l, budget-n)
		n += m
		if err != nil || rest {
			return n, rest, err
		}
	}
	return n, false, nil
}

func (at *sweepPlace) inScheduled(l *lane, budget int) (n int, rest bool, err error) {
	if l.head.Counts[scheduled] == 0 {
		return 0, false, nil
	}
	from := timeKey{l.owner, at.When, at.Seq}
	if first := l.head.First.Scheduled; from.When < first {
		from.When, from.Seq = first, 0
	}
	ids, next, err := upTo(l, &schedules, appendTime(nil, from)[:table.OwnerBytes], appendTime(nil, from), budget, func(v *idEntry) string { return v.ID })
	if err == nil {
		err = l.buryExhausted(ids, scheduled)
	}
	if next != nil {
		at.When, at.Seq = next.When, next.Seq
	}
	return len(ids), next != nil, err
}

func (at *sweepPlace) inReady(l *lane, budget int) (n int, rest bool, err error) {
	r := l.head.Ready[at.Priority]
	if r.Count == 0 {
		return 0, false, nil
	}
	from := readyKey{Owner: l.owner, Priority: at.Priority, Seq: max(at.Seq, r.Floor)}
	ids, next, err := upTo(l, &readies, codec.AppendUint8(l.owner.Append(nil), at.Priority), appendReady(nil, from), budget, func(v *readyEntry) string { return v.ID })
	if err == nil {
		err = l.buryExhausted(ids, ready)
	}
	if next != nil {
		at.Seq = next.Seq
	}
	return len(ids), next != nil, err
}

// upTo lists the messages of at most budget rows of an index; next is the row
// after them.
func upTo[K, V any](l *lane, t *table.Table[K, V], prefix, from []byte, budget int, id func(*V) string) (ids []string, next *K, err error) {
	err = t.Scan(l.c.Tx, table.Range{Prefix: prefix, From: from}, func(k K, v *V) (bool, error) {
		if len(ids) == budget {
			next = &k
			return false, nil
		}
		ids = append(ids, id(v))
		return true, nil
	})
	return ids, next, err
}

// buryExhausted puts those of the messages aside that have no attempt left.
func (l *lane) buryExhausted(ids []string, s state) error {
	for _, id := range ids {
		m, err := l.listedAs(id, s)
		switch {
		case err != nil:
			return err
		case !m.exhausted(l.policy):
		case m.isExpired(l.c.Now):
			l.expire(id, m)
		default:
			l.bury(id, m)
		}
	}
	return nil
}
