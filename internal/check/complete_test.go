package check_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/table"
)

// row is one row of the store.
type row struct{ key, value []byte }

// rows reads every row of the store.
func (w *world) rows() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	s := w.store.NewSnapshot()
	err := s.Scan(nil, nil, false, func(key, value []byte) (bool, error) {
		out[string(key)] = string(value)
		return true, nil
	})
	w.must(errors.Join(err, s.Close()))
	return out
}

// write puts and, where the value is nil, deletes rows below everything that knows
// what they mean.
func (w *world) write(rows ...row) {
	w.t.Helper()
	tx := w.store.NewTx()
	tx.Begin()
	for _, r := range rows {
		if r.value == nil {
			tx.Delete(r.key)
		} else {
			tx.Put(r.key, r.value)
		}
	}
	p, err := tx.Commit()
	w.must(err)
	w.must(errors.Join(p.Wait(), tx.Close()))
	// Every scan passes over all that was ever written to a row until it is compacted.
	if w.written++; w.written%100 == 0 {
		w.must(w.store.Compact([]byte{0}, []byte{0xFF}))
	}
}

// shardsOf are the shards of rows.
func shardsOf(rows []row) (out []uint16) {
	for _, r := range rows {
		shard := uint16(0)
		if len(r.key) >= 3 {
			shard = binary.BigEndian.Uint16(r.key[1:])
		}
		if shard <= shards && !slices.Contains(out, shard) {
			out = append(out, shard)
		}
	}
	return out
}

// finds says whether a check finds anything: in the shards of the rows first, which
// is quick, then in all.
func (w *world) finds(rows ...row) bool {
	w.t.Helper()
	ends := slices.ContainsFunc(rows, func(r row) bool { return r.key[0] == byte(table.StoreInfo) })
	for _, shard := range shardsOf(rows) {
		if report, err := check.Shard(w.store, shard); w.tells(report, err, ends) {
			return true
		}
	}
	report, err := check.Store(w.t.Context(), w.store, nil)
	return w.tells(report, err, ends)
}

// secrets are contents of documents, events and messages, as they would be shown.
var secrets = []string{"a@x", "Ada", fmt.Sprintf("%x", "a@x"), fmt.Sprintf("%x", "Ada"), "broken"}

// tells says that a check found something; what it says must name no content. Only
// without an identity it may end with an error: then nobody knows what is there.
func (w *world) tells(report *check.Report, err error, ends bool) bool {
	w.t.Helper()
	text := ""
	if err != nil {
		if text = err.Error(); !ends {
			w.t.Errorf("the check ended: %v", err)
		}
	} else {
		for _, f := range report.Findings {
			text += f.Where + ": " + f.Text + "\n"
		}
	}
	for _, s := range secrets {
		if strings.Contains(text, s) {
			w.t.Errorf("a finding names a content: %s", text)
		}
	}
	return text != ""
}

// damage is one change of the store, and how it is undone.
type damage struct {
	kind   string // remove, alter, garble, stray, move
	table  table.Info
	fields []string // what was altered
	rows   []row
	undo   []row
}

// tables lists every table there is.
func tables(t *testing.T) (out []table.Info) {
	t.Helper()
	registry, err := engine.Registry(api.DurableDisk)
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range registry.Resources() {
		out = append(out, res.Tables...)
	}
	return out
}

// damages lists what is done to one row. Of the bytes of key and value every
// step-th is changed.
func damages(tab table.Info, r row, all map[string]string, step int) (out []damage) {
	undo := row{r.key, r.value}
	out = append(out, damage{kind: "remove", table: tab, rows: []row{{r.key, nil}}, undo: []row{undo}})
	for _, garbled := range [][]byte{{0xFF}, append(bytes.Clone(r.value), 0)} {
		if _, _, err := tab.Read(r.key, garbled); err != nil {
			out = append(out, damage{kind: "garble", table: tab, rows: []row{{r.key, garbled}}, undo: []row{undo}})
		}
	}
	_, was, _ := tab.Read(r.key, r.value)
	for i := 0; i < len(r.value); i += step {
		for _, by := range []byte{1, 0x80} {
			v := bytes.Clone(r.value)
			v[i] += by
			if _, is, err := tab.Read(r.key, v); err == nil {
				out = append(out, damage{kind: "alter", table: tab, fields: differ(was, is), rows: []row{{r.key, v}}, undo: []row{undo}})
			}
		}
	}
	for i := 1; i < len(r.key); i += step {
		k := bytes.Clone(r.key)
		k[i]++
		if _, taken := all[string(k)]; taken {
			continue
		}
		if _, _, err := tab.Read(k, r.value); err != nil {
			continue
		}
		out = append(out,
			damage{kind: "stray", table: tab, rows: []row{{k, r.value}}, undo: []row{{k, nil}}},
			damage{kind: "move", table: tab, rows: []row{{r.key, nil}, {k, r.value}}, undo: []row{{k, nil}, undo}})
	}
	return out
}

// differ lists the fields in which two records differ.
func differ(a, b any) (out []string) {
	var visit func(path string, x, y reflect.Value)
	visit = func(path string, x, y reflect.Value) {
		if x.Kind() == reflect.Pointer && !x.IsNil() && !y.IsNil() {
			x, y = x.Elem(), y.Elem()
		}
		if x.Kind() != reflect.Struct {
			if fmt.Sprintf("%#v", x) != fmt.Sprintf("%#v", y) {
				out = append(out, path)
			}
			return
		}
		for i := range x.NumField() {
			name := x.Type().Field(i).Name
			if path != "" {
				name = path + "." + name
			}
			visit(name, x.Field(i), y.Field(i))
		}
	}
	visit("", reflect.ValueOf(a), reflect.ValueOf(b))
	return out
}

// leaving says that a row is put where rows are being removed.
func (d damage) leaving(w *world) bool {
	return slices.ContainsFunc(d.rows, func(r row) bool { return w.leaving(string(r.key)) })
}

// some are the rows of a table to damage: the first, the last, and some between.
func some(all map[string]string, id table.ID, passed func(key string) bool, most int) (out []row) {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if k[0] == byte(id) && !passed(k) {
			keys = append(keys, k)
		}
	}
	last := -1
	for i := range most {
		if at := i * (len(keys) - 1) / max(most-1, 1); len(keys) > 0 && at != last {
			out = append(out, row{[]byte(keys[at]), []byte(all[keys[at]])})
			last = at
		}
	}
	return out
}

func TestACheckFindsEveryDamageButThatWhichNothingElseTells(t *testing.T) {
	t.Parallel()
	w := full(t)
	all := w.rows()
	if w.finds() {
		t.Fatal("the check finds something in a store that is sound")
	}
	most, step, long := 3, 9, os.Getenv("KEYLOAD_LONG") != ""
	if long {
		most, step = 1000, 1
	}
	missed, excused, n := map[string]int{}, map[string]bool{}, 0
	for _, tab := range tables(t) {
		found := some(all, tab.ID, w.leaving, most)
		if len(found) == 0 {
			t.Errorf("the world has no row of table %s: fill it, and make the check find what is done to it", tab.Name)
		}
		if tab.ID == table.Receipt && len(found) > 20 {
			found = found[:20] // they are alike, and many
		}
		for _, r := range found {
			for _, d := range damages(tab, r, all, step) {
				if d.leaving(w) {
					continue
				}
				n++
				w.write(d.rows...)
				if !w.finds(d.rows...) {
					if why := d.excuse(excuses); why != "" {
						excused[why] = true
					} else {
						missed[d.name()]++
					}
				}
				w.write(d.undo...)
			}
		}
	}
	if !maps.Equal(all, w.rows()) {
		t.Fatal("the test did not undo what it did")
	}
	for _, m := range slices.Sorted(maps.Keys(missed)) {
		t.Errorf("the check does not find: %s (%d times)", m, missed[m])
	}
	for _, x := range excuses {
		if long && !excused[x.name()] {
			t.Errorf("an excuse excuses nothing: %s", x.name())
		}
	}
	t.Logf("%d damages", n)
}
