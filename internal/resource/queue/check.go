package queue

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// auditor counts, by one scan of each table, what the heads of a shard's lanes
// claim. The indexes of ready, scheduled, expiring and dead messages follow from
// the messages, and so does which messages of a lease are left; bodies and leases
// are compared with the messages by sums, and finished rows lane by lane.
type auditor struct {
	*op.Audit
	lanes   map[table.Owner]*tally
	last    *tally
	partial map[seqKey]*leftOf // by owner and batch: leases as the messages say
	scratch []byte
}

// tally is what the rows of one lane add up to.
type tally struct {
	owner                  table.Owner
	head                   *head // nil when it is missing
	unordered              bool  // finished rows cannot be read, or have gaps
	passed                 bool  // finished rows are wrong, and too many to say which
	disputed               bool  // finished rows list what no message says
	counts                 [states]int64
	stored, inFlight, dead int64
	expiring, finished     int64
	ready                  [priorities]int64
	lowest                 [priorities]uint64
	first                  firstInstants
	lastSeq, lastReady     uint64
	lastBatch, lastFinish  uint64
	bodies, leases         both
	remembered             both // finished messages, and what finished rows list
}

// both is a sum as messages imply it, and as another table has it.
type both struct{ messages, rows op.Sum }

func (p *both) equal() bool { return p.messages == p.rows }

// leftOf is what messages say of one lease row.
type leftOf struct {
	left bits
	size uint64
}

func (a *auditor) lane(o table.Owner) *tally {
	if a.last != nil && a.last.owner == o {
		return a.last
	}
	t := a.lanes[o]
	if t == nil {
		t = &tally{owner: o}
		a.lanes[o] = t
	}
	a.last = t
	return t
}

func (a *auditor) where(o table.Owner, id string) string {
	if id == "" {
		return "lane of " + a.OwnerName(o)
	}
	return fmt.Sprintf("message %q of %s", id, a.OwnerName(o))
}

// check verifies over one shard that every message has exactly the rows of its
// state, that every row has its message, that counters equal what a scan counts,
// and that what is due is armed (quality §1: 3, 4, 7, 8).
func check(audit *op.Audit) error {
	a := &auditor{Audit: audit, lanes: map[table.Owner]*tally{}, partial: map[seqKey]*leftOf{}}
	derives(a)
	for _, step := range []func() error{a.heads, a.messages, a.bodies, a.leases, a.finished, a.compare, a.limits} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// derives declares the indexes. Messages are counted by lane, and keep their number
// when anything else of them is altered.
func derives(a *auditor) {
	for _, d := range []op.Derived{
		{Table: readies.Info(), Subject: readyOf, Counted: true},
		{Table: schedules.Info(), Subject: timedOf, Counted: true},
		{Table: expiries.Info(), Subject: timedOf, Counted: true},
		{Table: deads.Info(), Subject: numberedOf, Counted: true},
		{Table: pendingDeads.Info(), Subject: numberedOf, Counted: true},
		{Table: leasesLeft.Info(), Verified: true}, // the lease row lists what messages say of their lease
		{Table: finisheds.Info(), Skip: a.remembers, Verified: true, Weigh: a.disputed},
	} {
		a.Derives(d)
	}
}

const ownerEnd = 1 + table.OwnerBytes

// readyOf is the message that a ready entry is of.
func readyOf(dst, key, value []byte) []byte {
	var e readyEntry
	if len(key) < ownerEnd || readies.Decode(value, &e) != nil {
		return append(dst, key...)
	}
	return append(append(dst, key[:ownerEnd]...), e.ID...)
}

// timedOf is the number of the message that a scheduled or expiring row is of: the key
// without the instant.
func timedOf(dst, key, _ []byte) []byte {
	return append(append(dst, key[:min(ownerEnd, len(key))]...), key[min(ownerEnd+8, len(key)):]...)
}

// numberedOf is the message that a row of the dead letters is of.
func numberedOf(dst, key, value []byte) []byte {
	var e idEntry
	if len(key) < ownerEnd || decodeID(value, &e) != nil {
		return append(dst, key...)
	}
	return append(append(dst, key[:ownerEnd]...), e.ID...)
}

func (a *auditor) heads() error {
	return op.Each(a.Audit, &heads, func(o table.Owner, h *head) error {
		a.Count("lanes", 1)
		a.ImplyDue(table.DueLane, o.Append(nil), h.Armed)
		a.lane(o).head = h
		return nil
	})
}

// compare verifies every lane with what its rows add up to.
func (a *auditor) compare() error {
	for _, o := range owners(a) {
		t := a.lane(o)
		if err := a.explain(t); err != nil {
			return err
		}
		if t.head == nil {
			a.Report("counters", a.where(o, ""), "the lane has rows and no head")
			op.Doubt(a.Audit, o)
			continue
		}
		if err := a.counters(t); err != nil {
			return err
		}
	}
	return nil
}

// owners lists the lanes that have rows, in the order of their keys.
func owners(a *auditor) (all []table.Owner) {
	//keyload:sorted the owners are sorted below
	for o := range a.lanes {
		all = append(all, o)
	}
	slices.SortFunc(all, func(x, y table.Owner) int { return bytes.Compare(x.Append(nil), y.Append(nil)) })
	return all
}

// counters compares a head with the tally of its lane.
func (a *auditor) counters(t *tally) error {
	o, h, where := t.owner, t.head, a.where(t.owner, "")
	same := func(what string, claimed, counted int64) {
		if claimed != counted {
			a.Report("counters", where, "%s: the head says %d, a scan counts %d", what, claimed, counted)
			op.Doubt(a.Audit, o)
		}
	}
	for s := scheduled; s < states; s++ {
		same(string(s.name()), h.Counts[s], t.counts[s])
	}
	same("storedBytes", h.StoredBytes, t.stored)
	same("inFlightBytes", h.InFlightBytes, t.inFlight)
	same("deadLetterBytes", h.DeadBytes, t.dead)
	same("expiring rows", h.ExpiringRows, t.expiring)
	same("finished rows", h.FinishedRows, t.finished)
	for p := range h.Ready {
		same(fmt.Sprintf("ready in priority %d", p), h.Ready[p].Count, t.ready[p])
		if t.ready[p] > 0 && t.lowest[p] < h.Ready[p].Floor {
			a.Report("floor", where, "priority %d has a ready entry at %d, below the floor %d", p, t.lowest[p], h.Ready[p].Floor)
		}
	}
	if h.Seq < t.lastSeq || h.ReadySeq < t.lastReady || h.Batch < t.lastBatch || h.FinishedSeq < t.lastFinish {
		a.Report("sequence", where, "a row has a sequence number above the head's")
	}
	if t.told() && t.finished > 0 && h.FinishedSeq > t.lastFinish {
		a.Report("sequence", where, "the last finished row has number %d; the head says %d", t.lastFinish, h.FinishedSeq)
	}
	conserved(a, where, h)
	return a.armed(o, where, h, t)
}

// conserved: every message enqueued is live, finished and remembered, or pruned, in
// finished rows of at least one.
func conserved(a *auditor, where string, h *head) {
	here := h.stored() + h.Counts[acked] + h.Counts[expired] + h.Counts[cancelled]
	if h.Totals.Enqueued != here+h.Totals.Pruned {
		a.Report("conservation", where, "%d were enqueued; %d are here and %d were pruned", h.Totals.Enqueued, here, h.Totals.Pruned)
	}
	if ended := h.Totals.Acked + h.Totals.Expired + h.Totals.Cancelled; h.Totals.Enqueued != h.stored()+ended {
		a.Report("conservation", where, "%d were enqueued; %d are unfinished and %d ended", h.Totals.Enqueued, h.stored(), ended)
	}
	if rows := int64(h.FinishedSeq) - h.FinishedRows; rows < 0 || rows > h.Totals.Pruned || (rows == 0) != (h.Totals.Pruned == 0) {
		a.Report("conservation", where, "%d finished rows were pruned, with %d messages", rows, h.Totals.Pruned)
	}
	if h.Seq != uint64(h.Totals.Enqueued) {
		a.Report("conservation", where, "%d were enqueued, the last has number %d", h.Totals.Enqueued, h.Seq)
	}
}

// armed: the head's lower bounds hold, and the lane is armed early enough.
func (a *auditor) armed(o table.Owner, where string, h *head, t *tally) error {
	res, err := directory.ByID(a.R, o.Shard, o.Resource)
	if err != nil || res == nil {
		return err
	}
	bound := func(what string, claimed, actual int64) {
		if actual != 0 && (claimed == 0 || claimed > actual) {
			a.Report("bound", where, "the first %s row is at %d; the head says not before %d", what, actual, claimed)
		}
	}
	bound("scheduled", h.First.Scheduled, t.first.Scheduled)
	bound("lease", h.First.Lease, t.first.Lease)
	bound("expiring", h.First.Expiry, t.first.Expiry)
	bound("finished", h.First.Finished, t.first.Finished)
	next := leasing.Earlier(leasing.Earlier(t.first.Scheduled, t.first.Lease), t.first.Expiry)
	if next != 0 && (h.Armed == 0 || h.Armed > max(next, a.Now)) { // what a step left over is due from then on
		a.Report("due", where, "something is due at %d and the lane is armed for %d", next, h.Armed)
	}
	return nil
}

// limits checks that every sweep for a lowered limit is due, and of a whole queue.
func (a *auditor) limits() error {
	return op.Each(a.Audit, &limitSweeps, func(o table.Owner, s *limitSweep) error {
		if s.Armed == 0 || s.Armed > a.Now || o.Partition != [16]byte{} || s.Place.Priority >= priorities {
			a.Report("due", a.where(o, ""), "the sweep for a lowered limit is armed for %d, or not of a whole queue", s.Armed)
		}
		a.ImplyDue(table.DueLimit, o.Append(nil), s.Armed)
		return nil
	})
}
