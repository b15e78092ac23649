package queue

import (
	"github.com/keyload/keyload/internal/resource/leasing"
)

// The second half of check: from every index row to its message.

func (a *auditor) bodies() error {
	return bodies.Scan(a.R, a.prefix(), func(k seqKey, _ *body) (bool, error) {
		a.lane(k.Owner).bodies++
		return true, nil
	})
}

func (a *auditor) readies() error {
	return readies.Scan(a.R, a.prefix(), func(k readyKey, v *readyEntry) (bool, error) {
		t := a.lane(k.Owner)
		if t.ready[k.Priority] == 0 {
			t.lowest[k.Priority] = k.Seq
		}
		t.ready[k.Priority]++
		return true, a.listed("ready", k.Owner, v.ID, func(m *message) bool {
			return m.State == ready && m.ReadySeq == k.Seq && m.Priority == k.Priority &&
				m.ContentBytes == v.Content && m.Charge == v.Charge && m.ExpiresAt == v.ExpiresAt
		})
	})
}

func (a *auditor) schedules() error {
	return schedules.Scan(a.R, a.prefix(), func(k timeKey, v *idEntry) (bool, error) {
		t := a.lane(k.Owner)
		t.first.Scheduled = leasing.Earlier(t.first.Scheduled, k.When)
		return true, a.listed("scheduled", k.Owner, v.ID, func(m *message) bool {
			return m.State == scheduled && m.NotBefore == k.When && m.Seq == k.Seq
		})
	})
}

func (a *auditor) expiries() error {
	return expiries.Scan(a.R, a.prefix(), func(k timeKey, v *idEntry) (bool, error) {
		t := a.lane(k.Owner)
		t.expiring++
		t.first.Expiry = leasing.Earlier(t.first.Expiry, k.When)
		return true, a.listed("expiring", k.Owner, v.ID, func(m *message) bool {
			return m.State.waits() && m.ExpiresAt == k.When && m.Seq == k.Seq
		})
	})
}

func (a *auditor) leases() error {
	err := leases.Scan(a.R, a.prefix(), func(k timeKey, v *batch) (bool, error) {
		t := a.lane(k.Owner)
		t.first.Lease = leasing.Earlier(t.first.Lease, k.When)
		left, partial, err := leasesLeft.Get(a.R, seqKey{k.Owner, k.Seq})
		if err != nil {
			return false, err
		}
		if partial {
			t.partial++
		} else {
			left = firstBits(uint64(len(v.IDs)))
		}
		if left.empty() {
			a.Report("lease", a.where(k.Owner, ""), "lease row %d holds nothing", k.Seq)
		}
		for i, id := range v.IDs {
			if !left.has(uint64(i)) {
				continue
			}
			left.clear(uint64(i))
			if err := a.listed("lease", k.Owner, id, func(m *message) bool {
				return m.State == leased && m.Lease.Until == k.When && m.Lease.Batch == k.Seq && m.Lease.Index == uint64(i)
			}); err != nil {
				return false, err
			}
		}
		if !left.empty() {
			a.Report("lease", a.where(k.Owner, ""), "lease row %d says that more are left than it lists", k.Seq)
		}
		t.lastBatch = max(t.lastBatch, k.Seq)
		return true, nil
	})
	if err != nil {
		return err
	}
	return leasesLeft.Scan(a.R, a.prefix(), func(k seqKey, _ *bits) (bool, error) {
		t := a.lane(k.Owner)
		t.lastBatch = max(t.lastBatch, k.Seq)
		t.partial--
		return true, nil
	})
}

func (a *auditor) finished() error {
	return finisheds.Scan(a.R, a.prefix(), func(k timeKey, v *batch) (bool, error) {
		t := a.lane(k.Owner)
		t.finished++
		t.lastFinish = max(t.lastFinish, k.Seq)
		t.first.Finished = leasing.Earlier(t.first.Finished, k.When)
		for _, id := range v.IDs {
			if err := a.listed("finished", k.Owner, id, func(m *message) bool {
				return m.State == v.State && m.State.finished() && m.FinishedAt == k.When
			}); err != nil {
				return false, err
			}
			t.remembered++
		}
		return true, nil
	})
}

func (a *auditor) dead() error {
	one := func(what string, s state) func(seqKey, *idEntry) (bool, error) {
		return func(k seqKey, v *idEntry) (bool, error) {
			return true, a.listed(what, k.Owner, v.ID, func(m *message) bool { return m.State == s && m.Seq == k.Seq })
		}
	}
	if err := deads.Scan(a.R, a.prefix(), one("dead", dead)); err != nil {
		return err
	}
	return pendingDeads.Scan(a.R, a.prefix(), one("pendingDead", pendingDead))
}
