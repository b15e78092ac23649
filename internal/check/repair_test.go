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

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/table"
)

// primary are the rows of all tables that hold what follows from nothing.
func primary(all map[string]string, derived map[table.ID]bool) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(k, _ string) bool { return derived[table.ID(k[0])] })
	return out
}

// kept says that a damaged row of a derived table is evidence of its own, so that it
// is reported and left as it is.
func (d damage) kept(w *world) bool {
	k := d.rows[0].key
	shard := binary.BigEndian.Uint16(k[1:])
	switch d.table.ID {
	case table.ResourceByName, table.Principal, table.Dispatch:
		for _, r := range d.rows {
			if binary.BigEndian.Uint16(r.key[1:]) == 0 {
				return true // the catalog's own
			}
		}
		return shard == 0
	case table.EventID:
		if slices.Contains(d.fields, "Digest") {
			return true // the content of the event may be what is damaged
		}
		return slices.ContainsFunc(d.rows, func(r row) bool { return w.purged(string(r.key)) })
	}
	return false
}

func TestARepairMakesEveryDerivedRowWhatItWas(t *testing.T) {
	w := full(t)
	all := w.rows()
	derived, err := check.DerivedTables(w.store)
	w.must(err)
	most, step := 2, 11
	if os.Getenv("KEYLOAD_LONG") != "" {
		most, step = 1000, 1
	}
	n, kept := 0, map[table.ID]bool{}
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
				if _, err := check.Rebuild(t.Context(), w.store, nil); err != nil {
					t.Fatalf("%s %s: %v", d.kind, tab.Name, err)
				}
				switch is := w.rows(); {
				case maps.Equal(is, all) && !w.finds(d.rows...):
				case d.kept(w) && maps.Equal(primary(is, derived), primary(all, derived)):
					kept[tab.ID] = true
					w.write(d.undo...)
				default:
					t.Errorf("%s of a row of %s at %x: after the repair\n%s", d.kind, tab.Name, r.key, difference(all, is))
					w.write(d.undo...)
				}
			}
		}
	}
	for _, id := range []table.ID{table.ResourceByName, table.Principal, table.Dispatch, table.EventID} {
		if !kept[id] {
			t.Errorf("no row of table %d was kept as evidence", id)
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
				_, err := check.Rebuild(t.Context(), w.store, nil)
				after := w.rows()
				if err != nil && (fault.CodeOf(err) != fault.Corruption || !maps.Equal(before, after)) {
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
