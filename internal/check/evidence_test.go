package check_test

import (
	"os"
	"slices"
	"testing"

	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/table"
)

// settled lists damages that a check finds, and after a repair no more: the due rows
// have followed what was damaged. Each says why nothing is lost and nothing is done
// twice by it.
var settled = []excuse{
	{"alter", "shardHead", "Prune", "earlier than needed: a step that finds nothing; later is reported"},
	{"alter", "documentHead", "Armed", "earlier: a step that finds nothing; later: tombstones stay longer"},
	{"alter", "sourceHead", "ArmedPurge", "earlier: rows go that nobody can read; later: they stay longer"},
	{"alter", "sourceHead", "ArmedIDs", "earlier than needed: a step that finds nothing; later is reported"},
	{"alter", "sourceHead", "ArmedAge", "earlier than needed: a step that finds nothing; later is reported"},
	{"alter", "ageSweep", "Armed", "earlier than now is now; later is reported"},
	{"alter", "laneHead", "Armed", "earlier than needed: a step that finds nothing; later is reported"},
	{"alter", "limitSweep", "Armed", "earlier than now is now; later is reported"},
	{"alter", "inboxHead", "Armed", "earlier than needed: a step that finds nothing; later is reported"},
	{"alter", "groupHead", "Armed", "earlier than needed: a step that finds nothing; later is reported"},
	{"alter", "groupRemoval", "Armed", "earlier than now is now; later is reported"},
	{"alter", "resourcePurge", "Armed", "earlier than now is now; later is reported"},
	{"stray", "groupRemoval", "", "of a group that is not there, so there is nothing to remove; of one that is there it is reported"},
}

// repair repairs until a repair writes nothing, as a person would.
func (w *world) repair(what string, rows ...row) {
	w.t.Helper()
	for range 4 {
		done, err := w.rebuild(rows)
		if err != nil {
			w.t.Fatalf("%s: %v", what, err)
		}
		if len(done) == 0 {
			return
		}
	}
	w.t.Fatalf("%s: one repair after another writes something", what)
}

// repairable says that a repair would write something, in the shards of the rows.
func (w *world) repairable(rows ...row) bool {
	w.t.Helper()
	for _, shard := range shardsOf(rows) {
		report, err := check.Shard(w.store, shard)
		w.must(err)
		if report.Derived() {
			return true
		}
	}
	return false
}

// rebuild carries out the writing part of a repair. After damage of some rows of data
// shards it does so in those alone, since no shard is repaired by the rows of another
// but the catalog's.
func (w *world) rebuild(rows []row) ([]check.Rebuilt, error) {
	in := shardsOf(rows)
	if len(in) == 0 || slices.Contains(in, 0) {
		return check.Rebuild(w.t.Context(), w.store, nil)
	}
	return check.RebuildShards(w.t.Context(), w.store, in)
}

// Whatever is done to a row that follows from nothing is still told after a repair, so
// that no repair takes away the last that tells of it.
func TestARepairHidesNoDamageOfWhatFollowsFromNothing(t *testing.T) {
	t.Parallel()
	w := full(t)
	all := w.rows()
	derived, err := check.DerivedTables(w.store)
	w.must(err)
	most, step, long := 3, 9, os.Getenv("KEYLOAD_LONG") != ""
	if long {
		most, step = 100, 1
	}
	n, hidden, excused := 0, map[string]int{}, map[string]bool{}
	for _, tab := range tables(t) {
		if derived[tab.ID] || tab.ID == table.StoreInfo {
			continue
		}
		for _, r := range some(all, tab.ID, w.leaving, min(most, 20)) {
			for _, d := range damages(tab, r, all, step) {
				if d.leaving(w) {
					continue
				}
				w.write(d.rows...)
				if !w.repairable(d.rows...) {
					w.write(d.undo...)
					continue
				}
				n++
				w.repair(d.name(), d.rows...)
				if !w.finds(d.rows...) {
					if why := d.excuse(settled); why != "" {
						excused[why] = true
					} else {
						hidden[d.name()]++
					}
				}
				w.back(w.rows(), all)
			}
		}
	}
	for name, times := range hidden {
		t.Errorf("a repair hides: %s (%d times)", name, times)
	}
	for _, x := range settled {
		if !excused[x.name()] && long {
			t.Errorf("an excuse excuses nothing: %s", x.name())
		}
	}
	t.Logf("%d damages that a repair does something about", n)
}
