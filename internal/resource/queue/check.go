package queue

import (
	"fmt"
	"slices"

	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// auditor counts, by full scan, what the heads of a shard's lanes claim.
type auditor struct {
	*op.Audit
	lanes map[table.Owner]*tally
}

// tally is what the rows of one lane add up to.
type tally struct {
	counts                 [states]int64
	stored, inFlight, dead int64
	expiring, finished     int64
	bodies, remembered     int64
	partial                int64 // lease rows of which some are left, less rows that say which
	ready                  [priorities]int64
	lowest                 [priorities]uint64
	first                  firstInstants
	lastSeq, lastReady     uint64
	lastBatch, lastFinish  uint64
}

func (a *auditor) lane(o table.Owner) *tally {
	t := a.lanes[o]
	if t == nil {
		t = &tally{}
		a.lanes[o] = t
	}
	return t
}

func (a *auditor) where(o table.Owner, id string) string {
	return fmt.Sprintf("lane %x/%d message %q", o.Partition[:4], o.Resource, id)
}

// check verifies over one shard that every message has exactly the rows of its
// state, that every index entry has its message, that counters equal what a
// scan counts, and that what is due is armed (quality §1: 3, 4, 7, 8).
func check(audit *op.Audit) error {
	a := &auditor{audit, map[table.Owner]*tally{}}
	for _, step := range []func() error{
		a.messages, a.bodies, a.readies, a.schedules, a.expiries, a.leases, a.finished, a.dead, a.heads, a.limits,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (a *auditor) prefix() table.Range {
	return table.Range{Prefix: codec.AppendUint16(nil, a.Space.Shard)}
}

func (a *auditor) messages() error {
	return messages.Scan(a.R, a.prefix(), func(k messageKey, m *message) (bool, error) {
		t := a.lane(k.Owner)
		t.counts[m.State]++
		t.lastSeq, t.lastReady = max(t.lastSeq, m.Seq), max(t.lastReady, m.ReadySeq)
		a.Count("messages", 1)
		if m.State.finished() {
			return true, nil
		}
		t.stored += int64(m.Charge)
		switch m.State {
		case leased:
			t.inFlight += int64(m.Charge)
			t.lastBatch = max(t.lastBatch, m.Lease.Batch)
		case dead:
			t.dead += int64(m.Charge)
		}
		return true, a.rowsOf(k, m)
	})
}

// rowsOf looks for the rows an unfinished message must have.
func (a *auditor) rowsOf(k messageKey, m *message) error {
	expect := func(what string, has bool, err error) error {
		if err == nil && !has {
			a.Report("index", a.where(k.Owner, k.ID), "the message is %s and has no %s row", m.State.name(), what)
		}
		return err
	}
	seq := seqKey{k.Owner, m.Seq}
	has, err := bodies.Has(a.R, seq)
	if err := expect("body", has, err); err != nil {
		return err
	}
	switch m.State {
	case scheduled:
		has, err = schedules.Has(a.R, timeKey{k.Owner, m.NotBefore, m.Seq})
	case ready:
		has, err = readies.Has(a.R, readyKey{Owner: k.Owner, Priority: m.Priority, Seq: m.ReadySeq})
	case leased:
		has, err = a.listsLease(k, m)
	case dead:
		has, err = deads.Has(a.R, seq)
	case pendingDead:
		has, err = pendingDeads.Has(a.R, seq)
	}
	if err := expect("index", has, err); err != nil {
		return err
	}
	if m.ExpiresAt != 0 && m.State.waits() {
		has, err = expiries.Has(a.R, timeKey{k.Owner, m.ExpiresAt, m.Seq})
		return expect("expiring", has, err)
	}
	return nil
}

// listsLease says whether the message's lease row names it as still leased.
func (a *auditor) listsLease(k messageKey, m *message) (bool, error) {
	x := &m.Lease
	if x.Until == 0 || x.Batch == 0 || m.LeaseVersion == 0 {
		a.Report("lease", a.where(k.Owner, k.ID), "the lease has no deadline, batch or version")
	}
	row, ok, err := leases.Get(a.R, timeKey{k.Owner, x.Until, x.Batch})
	if err != nil || !ok || x.Index >= uint64(len(row.IDs)) || row.IDs[x.Index] != k.ID {
		return false, err
	}
	left, partial, err := leasesLeft.Get(a.R, seqKey{k.Owner, x.Batch})
	return !partial || left.has(x.Index), err
}

// listed checks that an index row's message exists and stands as the row says.
func (a *auditor) listed(what string, o table.Owner, id string, stands func(*message) bool) error {
	m, ok, err := messages.Get(a.R, messageKey{o, id})
	if err == nil && (!ok || !stands(&m)) {
		a.Report("index", a.where(o, id), "a %s row lists the message, which is not there or stands otherwise", what)
	}
	return err
}

func (a *auditor) heads() error {
	seen := map[table.Owner]bool{}
	err := heads.Scan(a.R, a.prefix(), func(o table.Owner, h *head) (bool, error) {
		seen[o] = true
		a.Count("lanes", 1)
		return true, a.head(o, h)
	})
	if err != nil {
		return err
	}
	var orphans []table.Owner
	//keyload:sorted the owners are sorted below
	for o := range a.lanes {
		if !seen[o] {
			orphans = append(orphans, o)
		}
	}
	slices.SortFunc(orphans, func(x, y table.Owner) int {
		return slices.Compare(x.Append(nil), y.Append(nil))
	})
	for _, o := range orphans {
		if gone, err := a.deleted(o); err != nil {
			return err
		} else if !gone {
			a.Report("counters", a.where(o, ""), "the lane has rows and no head")
		}
	}
	return nil
}

// deleted says that the lane's queue is gone, and its rows are being removed.
func (a *auditor) deleted(o table.Owner) (bool, error) {
	res, err := directory.ByID(a.R, o.Shard, o.Resource)
	return res == nil, err
}

// head compares a head with the tally of its lane.
func (a *auditor) head(o table.Owner, h *head) error {
	t := a.lane(o)
	where := a.where(o, "")
	same := func(what string, claimed, counted int64) {
		if claimed != counted {
			a.Report("counters", where, "%s: the head says %d, a scan counts %d", what, claimed, counted)
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
	same("bodies", h.stored(), t.bodies)
	same("finished messages", h.Counts[acked]+h.Counts[expired]+h.Counts[cancelled], t.remembered)
	same("rows of partly finished leases without their lease", 0, t.partial)
	for p := range h.Ready {
		same(fmt.Sprintf("ready in priority %d", p), h.Ready[p].Count, t.ready[p])
		if t.ready[p] > 0 && t.lowest[p] < h.Ready[p].Floor {
			a.Report("floor", where, "priority %d has a ready entry at %d, below the floor %d", p, t.lowest[p], h.Ready[p].Floor)
		}
	}
	if h.Seq < t.lastSeq || h.ReadySeq < t.lastReady || h.Batch < t.lastBatch || h.FinishedSeq < t.lastFinish {
		a.Report("sequence", where, "a row has a sequence number above the head's")
	}
	a.conserved(where, h)
	return a.armed(o, where, h, t)
}

// conserved: every message enqueued is live, finished and remembered, or pruned.
func (a *auditor) conserved(where string, h *head) {
	here := h.stored() + h.Counts[acked] + h.Counts[expired] + h.Counts[cancelled]
	if h.Totals.Enqueued != here+h.Totals.Pruned {
		a.Report("conservation", where, "%d were enqueued; %d are here and %d were pruned", h.Totals.Enqueued, here, h.Totals.Pruned)
	}
	if ended := h.Totals.Acked + h.Totals.Expired + h.Totals.Cancelled; h.Totals.Enqueued != h.stored()+ended {
		a.Report("conservation", where, "%d were enqueued; %d are unfinished and %d ended", h.Totals.Enqueued, h.stored(), ended)
	}
}

// armed: the head's lower bounds hold, and the due row is there and early
// enough.
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
	if h.Armed == 0 {
		return nil
	}
	has, err := table.DueRows.Has(a.R, table.DueKey{Shard: o.Shard, When: h.Armed, Kind: table.DueLane, Owner: string(o.Append(nil))})
	if err == nil && !has {
		a.Report("due", where, "the lane is armed for %d and has no due row", h.Armed)
	}
	return err
}
