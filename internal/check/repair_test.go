package check_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/table"
)

// primary are the rows of all tables that hold what follows from nothing.
func primary(all map[string]string, derived map[table.ID]bool) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(k, _ string) bool { return derived[table.ID(k[0])] })
	return out
}

// left lists what is done to derived rows and left to a person, because the row they
// follow from might be what is lost or altered instead.
var left = []excuse{
	{"remove", "eventId", "", "of a purged event"},
	{"garble", "eventId", "", "of a purged event"},
	{"alter", "eventId", "", "the content of the event may be what is altered"},
	{"move", "receiptAt", "", "its receipt may have been made at another time"},
	{"stray", "receiptAt", "", "its receipt may be lost"},
	{"move", "inboxAt", "", "its record may have been made at another time"},
	{"alter", "inboxAt", "", "its record may have had another key"},
	{"stray", "inboxAt", "", "its record may be lost"},
	{"move", "due", "", "another owner may be lost that was armed"},
	{"stray", "due", "", "its owner may be lost"},
	{"move", "apiKeyTenant", "", "another key may be lost"},
	{"stray", "apiKeyTenant", "", "its key may be lost"},
	{"move", "documentIndex", "", "its document may have had other fields"},
	{"stray", "documentIndex", "", "its document may be lost"},
	{"move", "documentUnique", "", "its document may have had other fields"},
	{"alter", "documentUnique", "", "its document may have had another id"},
	{"stray", "documentUnique", "", "its document may be lost"},
	{"move", "documentTombstone", "", "its document may have been deleted at another time"},
	{"stray", "documentTombstone", "", "its document may be lost"},
	{"move", "eventId", "", "its event may have had another id"},
	{"stray", "eventId", "", "its event may be lost"},
	{"move", "ready", "", "its message may have had another priority"},
	{"alter", "ready", "", "its message may have had another id or size"},
	{"move", "scheduled", "", "its message may have waited for another instant"},
	{"alter", "scheduled", "", "its message may have had another id"},
	{"move", "expiring", "", "its message may have had another end"},
	{"alter", "expiring", "", "its message may have had another id"},
	{"move", "dead", "", "its message may have had another number"},
	{"alter", "dead", "", "its message may have had another id"},
	{"move", "pendingDead", "", "its message may have had another number"},
	{"alter", "pendingDead", "", "its message may have had another id"},
	{"move", "finished", "", "its messages may have finished at another time"},
	{"alter", "finished", "", "its messages may have had other ids, or another end"},
	{"stray", "finished", "", "its messages may be lost"},
	{"move", "groupWait", "", "its place may have waited for another instant"},
	{"move", "groupKeyed", "", "its position may have had another key"},
	{"stray", "groupKeyed", "", "its position may have had a key"},
}

// left says that a damaged row of a derived table may be left as it is.
func (d damage) left() bool {
	switch d.table.ID {
	case table.ResourceByName, table.Principal, table.Dispatch: // the catalog's own
		return slices.ContainsFunc(d.rows, func(r row) bool { return binary.BigEndian.Uint16(r.key[1:]) == 0 })
	}
	return slices.ContainsFunc(left, func(x excuse) bool { return x.kind == d.kind && x.table == d.table.Name })
}

func TestARepairMakesEveryDerivedRowWhatItWas(t *testing.T) {
	t.Parallel()
	w := full(t)
	all := w.rows()
	if w.finds() {
		t.Fatal("the check finds something in a store that is sound")
	}
	derived, err := check.DerivedTables(w.store)
	w.must(err)
	most, step := 2, 11
	if os.Getenv("KEYLOAD_LONG") != "" {
		most, step = 1000, 1
	}
	n, kept := 0, map[string]bool{}
	for _, tab := range tables(t) {
		if !derived[tab.ID] {
			continue
		}
		for _, r := range some(all, tab.ID, w.leaving, most) {
			for _, d := range damages(tab, r, all, step) {
				if slices.ContainsFunc(d.rows, func(r row) bool { return binary.BigEndian.Uint16(r.key[1:]) > shards || w.leaving(string(r.key)) }) {
					continue // of no shard, or of what is being removed
				}
				n++
				w.write(d.rows...)
				if _, err := w.rebuild(d.rows); err != nil {
					t.Fatalf("%s %s: %v", d.kind, tab.Name, err)
				}
				switch is := w.rows(); {
				case maps.Equal(is, all): // in which nothing is found
				case d.left() && maps.Equal(primary(is, derived), primary(all, derived)) && (w.finds(d.rows...) || d.excuse(excuses) != ""):
					kept[d.kind+" "+tab.Name] = true
					w.back(is, all)
				default:
					t.Errorf("%s of a row of %s at %x: after the repair\n%s", d.kind, tab.Name, r.key, difference(all, is))
					w.back(is, all)
				}
			}
		}
	}
	for _, name := range []string{"remove resource", "move principal", "garble dispatch"} { // the catalog's own
		if !kept[name] {
			t.Errorf("no damage was left to a person: %s", name)
		}
	}
	for _, x := range left {
		if name := x.kind + " " + x.table; !kept[name] && os.Getenv("KEYLOAD_LONG") != "" {
			t.Errorf("no damage was left to a person: %s", name)
		}
	}
	t.Logf("%d damages", n)
}

// difference is for people.
func difference(was, is map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(was)) {
		if v, ok := is[k]; !ok {
			fmt.Fprintf(&b, "  missing %x %x\n", k, was[k])
		} else if v != was[k] {
			fmt.Fprintf(&b, "  differs %x %x\n     now  %x\n", k, was[k], v)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[k]; !ok {
			fmt.Fprintf(&b, "  added   %x %x\n", k, is[k])
		}
	}
	return b.String()
}

// back makes the rows of the store what they were.
func (w *world) back(is, was map[string]string) {
	w.t.Helper()
	var rows []row
	for k, v := range is {
		if _, ok := was[k]; !ok {
			rows = append(rows, row{[]byte(k), nil})
		} else if was[k] != v {
			rows = append(rows, row{[]byte(k), []byte(was[k])})
		}
	}
	for k, v := range was {
		if _, ok := is[k]; !ok {
			rows = append(rows, row{[]byte(k), []byte(v)})
		}
	}
	w.write(rows...)
}

func TestARepairNeverTouchesARowThatFollowsFromNothing(t *testing.T) {
	t.Parallel()
	w := full(t)
	all := w.rows()
	derived, err := check.DerivedTables(w.store)
	w.must(err)
	most, step := 2, 19
	if os.Getenv("KEYLOAD_LONG") != "" {
		most, step = 100, 2
	}
	for _, tab := range tables(t) {
		if derived[tab.ID] || tab.ID == table.StoreInfo {
			continue
		}
		for _, r := range some(all, tab.ID, w.leaving, min(most, 20)) {
			for _, d := range damages(tab, r, all, step) {
				w.write(d.rows...)
				before := w.rows()
				_, err := w.rebuild(d.rows)
				after := w.rows()
				if err != nil {
					t.Fatalf("%s %s: %v", d.kind, tab.Name, err)
				}
				if !maps.Equal(primary(before, derived), primary(after, derived)) {
					t.Errorf("%s of a row of %s at %x: the repair changed\n%s", d.kind, tab.Name, r.key, difference(primary(before, derived), primary(after, derived)))
				}
				w.back(after, all)
			}
		}
	}
}

// repaired is the list of tables in the document.
var repaired = regexp.MustCompile(`and no others:\n([0-9, ]+)\.`)

func TestTheStorageDocumentListsTheTablesARepairWrites(t *testing.T) {
	text, err := os.ReadFile("../../docs/storage.md")
	must(t, err)
	w := newWorld(t)
	derived, err := check.DerivedTables(w.store)
	must(t, err)
	want := []string{}
	for _, id := range slices.Sorted(maps.Keys(derived)) {
		want = append(want, fmt.Sprint(id))
	}
	found := repaired.FindStringSubmatch(string(text))
	if found == nil || found[1] != strings.Join(want, ", ") {
		t.Errorf("the document lists %q, want %s", found, strings.Join(want, ", "))
	}
}
