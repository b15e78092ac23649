package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
)

func eq(path, value string) api.Condition { return when(path, api.OpEqual, value) }

func when(path string, o api.ConditionOp, value string) api.Condition {
	return api.Condition{Path: path, Op: o, Value: api.JSON(value)}
}

func where(c ...api.Condition) api.DocumentsQueryRequest { return api.DocumentsQueryRequest{Where: c} }

func index(name string, paths ...string) api.IndexDefinition {
	return api.IndexDefinition{Name: name, Paths: paths}
}

func unique(name string, paths ...string) api.IndexDefinition {
	return api.IndexDefinition{Name: name, Paths: paths, Unique: true}
}

func TestAQueryUsesTheIndexThatFixesMost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{
			index("city", "/city"), index("city-age", "/city", "/age"), index("age", "/age"), unique("mail", "/mail"),
		}})
		for _, d := range []struct{ id, doc string }{
			{"a", `{"city":"Rom","age":30,"mail":"a@x"}`}, {"b", `{"city":"Rom","age":20}`}, {"c", `{"city":"Oslo","age":30}`},
			{"d", `{"city":"Rom","age":"30"}`}, {"e", `{"age":25}`}, {"f", `{"city":null}`}, {"g", `{"city":["Rom"],"age":{"x":1}}`}, {"h", `{}`},
		} {
			w.must(put(d.id, d.doc))
		}
		w.ids(where(eq("/city", `"Rom"`)), "city", "a", "b", "d")
		w.ids(where(eq("/city", `"Rom"`), eq("/age", `30`)), "city-age", "a")
		w.ids(where(eq("/city", `"\u0052om"`), eq("/age", `3e1`)), "city-age", "a")
		w.ids(where(eq("/city", `"Rom"`), when("/age", api.OpGreaterEqual, `20`), when("/age", api.OpLess, `30`)), "city-age", "b")
		w.ids(where(when("/age", api.OpGreater, `20`)), "age", "e", "a", "c")
		w.ids(where(when("/age", api.OpGreater, `"2"`)), "age", "d")
		w.ids(where(when("/city", api.OpPrefix, `"R"`)), "city", "a", "b", "d")
		w.ids(where(when("/city", api.OpPrefix, `"R"`), eq("/age", `30`)), "age", "a")
		w.ids(where(eq("/city", `null`)), "city", "f")
		w.ids(where(eq("/mail", `"a@x"`)), "mail", "a")
		w.ids(where(eq("/city", `"Rom"`), eq("/city", `"Oslo"`)), "city")
		w.ids(where(when("/age", api.OpGreater, `30`), when("/age", api.OpLess, `20`)), "age")
		w.ids(where(when("/age", api.OpGreater, `20`), when("/age", api.OpLess, `"z"`)), "age")
		w.ids(where(eq("/city", `"Rom"`), eq("/age/x", `1`)), "city")
		full := where(eq("/age/x", `1`))
		full.AllowFullScan = true
		w.ids(full, "", "g")
		ordered := where(eq("/city", `"Rom"`))
		ordered.OrderBy = "/age"
		w.ids(ordered, "city-age", "b", "a", "d")
		ordered.Descending = true
		w.ids(ordered, "city-age", "d", "a", "b")
		w.ids(api.DocumentsQueryRequest{OrderBy: "/age"}, "age", "f", "g", "h", "b", "e", "a", "c", "d")
		w.ids(api.DocumentsQueryRequest{OrderBy: "/mail"}, "mail", "b", "c", "d", "e", "f", "g", "h", "a")
		named := where(eq("/city", `"Rom"`), eq("/age", `30`))
		named.Index = "age"
		w.ids(named, "age", "a")
		w.ids(api.DocumentsQueryRequest{Index: "city", Descending: true}, "city", "d", "b", "a", "c", "f", "h", "g", "e")
	})
}

func TestQueriesThatNoIndexFitsNeedPermissionForAFullScan(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{index("city-age", "/city", "/age")}})
		w.must(put("a", `{"city":"Rom","age":30}`), put("b", `{"city":"Oslo","age":20}`))
		for _, c := range []struct {
			req    api.DocumentsQueryRequest
			reason string
		}{
			{where(), "no_index"},
			{where(eq("/age", `30`)), "no_index"},
			{api.DocumentsQueryRequest{OrderBy: "/age"}, "no_index_for_order"},
			{api.DocumentsQueryRequest{OrderBy: "/age", AllowFullScan: true}, "no_index_for_order"},
			{api.DocumentsQueryRequest{OrderBy: "/city", Where: []api.Condition{eq("/age", `30`)}}, "no_index"},
			{api.DocumentsQueryRequest{Index: "city-age", Where: []api.Condition{eq("/age", `30`)}}, "no_index"},
			{api.DocumentsQueryRequest{Index: "none", Where: []api.Condition{eq("/age", `30`)}}, "unknown_index"},
			{where(eq("/city", `{"x":1}`)), "invalid_field"},
			{where(eq("/city", `[]`)), "invalid_field"},
			{where(eq("/city", `1e1000000001`)), "invalid_field"},
			{where(when("/city", api.OpPrefix, `1`)), "invalid_field"},
			{where(eq("city", `1`)), "invalid_field"},
		} {
			_, err := w.ask(root, c.req)
			if !errors.Is(err, fault.New(fault.Validation, c.reason, "")) {
				t.Errorf("%+v: %v, want %s", c.req, err, c.reason)
			}
			if c.reason == "no_index" && !strings.Contains(err.Error(), `"city-age" over /city /age`) {
				t.Errorf("the refusal does not name the indexes: %v", err)
			}
		}
		for _, req := range []api.DocumentsQueryRequest{where(eq("/age", `30`)), {OrderBy: "/city", Where: []api.Condition{eq("/age", `30`)}}} {
			req.AllowFullScan = true
			resp, err := w.ask(root, req)
			if err != nil || !slices.Equal(idsOf(resp.Documents), []string{"a"}) {
				t.Errorf("with allowFullScan: %v, %v", resp, err)
			}
		}
	})
}

func TestNumbersAbove2To53AreFoundAndOrderedExactly(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{unique("n", "/n")}})
		order := []string{
			"-9223372036854775809", "-9007199254740993", "-9007199254740992", "0.1", "9007199254740992", "9007199254740993",
			"9007199254740993.5", "9007199254740994", "9223372036854775807", "9223372036854775808", "18446744073709551615", "1e30",
		}
		for i := range order {
			w.must(put(order[(i*5)%len(order)], `{"n":`+order[(i*5)%len(order)]+`}`))
		}
		w.ids(api.DocumentsQueryRequest{OrderBy: "/n"}, "n", order...)
		for i, n := range order {
			w.ids(where(eq("/n", n)), "n", n)
			w.ids(where(when("/n", api.OpGreater, n)), "n", order[i+1:]...)
			w.ids(where(when("/n", api.OpLess, n)), "n", order[:i]...)
		}
		w.ids(where(eq("/n", "9007199254740993.0")), "n", "9007199254740993")
		w.refused(root, fault.Conflict, "unique_clash", put("x", `{"n":9007199254740993.00}`))
		w.must(put("x", `{"n":9007199254740995}`))
	})
}

func TestUniqueIndexesRefuseASecondDocumentWithTheSameFields(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{unique("u", "/a", "/b")}})
		w.must(put("1", `{"a":1,"b":"x"}`))
		w.refused(root, fault.Conflict, "unique_clash", put("2", `{"a":1.0,"b":"\u0078"}`))
		w.must(put("2", `{"a":1,"b":"y"}`))
		w.refused(root, fault.Conflict, "unique_clash", patch("2", set("/b", `"x"`)))
		w.must(put("1", `{"a":1,"b":"x","more":true}`)) // its own fields are not taken
		// Null is a value; what is missing or no scalar excludes nobody.
		w.must(put("3", `{"a":null,"b":null}`))
		w.refused(root, fault.Conflict, "unique_clash", put("4", `{"b":null,"a":null}`))
		w.must(put("4", `{"a":1}`), put("5", `{"a":1}`), put("6", `{"a":1,"b":[]}`), put("7", `{"a":1,"b":{}}`), put("8", `{}`), put("9", `{}`))
		w.ids(where(eq("/a", `1`)), "u", "4", "5", "6", "7", "1", "2")
		// A deletion and a change free the fields, within one batch too; in one
		// batch mutations apply in order.
		w.must(remove("1"), put("10", `{"a":1,"b":"x"}`))
		w.must(patch("10", set("/a", "2")), put("1", `{"a":1,"b":"x"}`))
		w.refused(root, fault.Conflict, "unique_clash", put("1", `{"a":2,"b":"x"}`), put("10", `{"a":1,"b":"x"}`))
		w.refused(root, fault.Conflict, "unique_clash", put("11", `{"a":7,"b":7}`), put("12", `{"a":7,"b":7}`))
		if _, err := w.get(root, "11"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a document of the refused batch: %v", err)
		}
		w.must(remove("4"), remove("5"), put("4", `{"a":1}`))
		_, err := w.commit(root, put("13", `{"a":null,"b":null}`))
		if f := fault.From(err); f == nil || f.Facts["index"] != "u" || strings.Contains(f.Detail, "null") {
			t.Errorf("the refusal is %v", err)
		}
	})
}

func TestIndexesHaveOneToEightFieldsOfBoundedLength(t *testing.T) {
	inWorld(t, func(w *world) {
		paths := []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"}
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{index("one", "/a"), index("eight", paths...), unique("u8", paths...)}})
		doc := `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":%d}`
		w.must(put("x", fmt.Sprintf(doc, 8)), put("y", fmt.Sprintf(doc, 9)))
		req := where(eq("/h", "9"))
		for i, p := range paths[:7] {
			req.Where = append(req.Where, eq(p, fmt.Sprint(i+1)))
		}
		w.ids(req, "eight", "y")
		// A text takes its bytes, a tag before and two bytes after.
		for n, refused := range map[int]bool{limits.IndexEntryBytes - 4: false, limits.IndexEntryBytes - 3: false, limits.IndexEntryBytes - 2: true} {
			w.define("long", api.CollectionPolicy{Indexes: []api.IndexDefinition{index("a", "/a")}})
			m := put("x", `{"a":"`+strings.Repeat("x", n)+`"}`)
			m.PutDocument.Collection = "long"
			_, err := w.commit(root, m)
			if got := fault.From(err); (got != nil) != refused || refused && got.Reason != "index_entry_too_long" {
				t.Errorf("a text of %d bytes: %v", n, err)
			}
		}
	})
	for n, valid := range map[int]bool{0: false, 1: true, 8: true, 9: false} {
		ix := api.IndexDefinition{Name: "i"}
		for i := range n {
			ix.Paths = append(ix.Paths, fmt.Sprint("/", i))
		}
		if found := api.Validate(&ix); (len(found) == 0) != valid {
			t.Errorf("%d paths: %v", n, found)
		}
	}
}

// pages reads a query page by page.
func (w *world) pages(p *api.Principal, req api.DocumentsQueryRequest) (ids []string, pages int) {
	w.t.Helper()
	for {
		resp, err := w.ask(p, req)
		if err != nil {
			w.t.Fatalf("page %d: %v", pages, err)
		}
		ids = append(ids, idsOf(resp.Documents)...)
		if pages++; pages > 1000 {
			w.t.Fatalf("the pages never end: %q", ids[:10])
		}
		if req.Cursor = resp.Cursor; req.Cursor == "" {
			return ids, pages
		}
	}
}

func TestPagesGoOnWhereTheLastOneEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{index("n", "/n"), unique("u", "/u"), index("long", "/long")}})
		var all, byN []string
		for i := range 20 {
			id := fmt.Sprintf("d%02d", i)
			w.must(put(id, fmt.Sprintf(`{"n":%d,"u":%d,"long":"%s"}`, i/10, i, strings.Repeat("x", 900)+id)))
			all = append(all, id)
		}
		byN = slices.Clone(all)
		for _, c := range []struct {
			name string
			req  api.DocumentsQueryRequest
		}{
			{"by id", api.DocumentsQueryRequest{AllowFullScan: true}}, {"by an index", api.DocumentsQueryRequest{Index: "n"}},
			{"by a unique index", api.DocumentsQueryRequest{OrderBy: "/u"}}, {"by an index of long texts", api.DocumentsQueryRequest{OrderBy: "/long"}},
		} {
			for _, limit := range []int64{1, 3, 19, 20, 21} {
				for _, down := range []bool{false, true} {
					req := c.req
					req.Limit, req.Descending = limit, down
					want := slices.Clone(byN)
					if down {
						slices.Reverse(want)
					}
					ids, pages := w.pages(root, req)
					if wantPages := (20 + int(limit) - 1) / int(limit); !slices.Equal(ids, want) || pages != wantPages {
						t.Errorf("%s, limit %d, descending %v: %q in %d pages, want %d", c.name, limit, down, ids, pages, wantPages)
					}
				}
			}
		}
		// One document is returned however little fits.
		if ids, pages := w.pages(root, api.DocumentsQueryRequest{Index: "n", MaxBytes: 1}); !slices.Equal(ids, all) || pages != 20 {
			t.Errorf("%q in %d pages", ids, pages)
		}
		size := int64(len("d00") + len(`{"n":0,"u":0,"long":"d00"}`) + 900)
		for bytes, want := range map[int64]int{2*size - 1: 1, 2 * size: 2, 2*size + 1: 2} {
			if resp, err := w.ask(root, api.DocumentsQueryRequest{AllowFullScan: true, MaxBytes: bytes}); err != nil || len(resp.Documents) != want {
				t.Errorf("%d bytes: %d documents, %v; want %d", bytes, len(resp.Documents), err, want)
			}
		}
	})
}

func TestCursorsHoldForTheirOwnQueryForADay(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{index("n", "/n"), index("long", "/long")}})
		for i := range 4 {
			w.must(put(fmt.Sprint(i), fmt.Sprintf(`{"n":1,"long":"%s%d"}`, strings.Repeat("x", 500), i)))
		}
		req := where(eq("/n", "1"))
		req.Limit = 2
		first, err := w.ask(root, req)
		if err != nil || first.Cursor == "" {
			t.Fatalf("%v, %v", first, err)
		}
		try := func(name string, p *api.Principal, req api.DocumentsQueryRequest, code fault.Code) {
			t.Helper()
			req.Cursor = first.Cursor
			if _, err := w.ask(p, req); fault.CodeOf(err) != code {
				t.Errorf("%s: %v, want %s", name, err, code)
			}
		}
		other := req
		other.Limit, other.MaxBytes = 1, 100
		try("with another page size", root, other, "")
		other = where(eq("/n", "2"))
		try("with another value", root, other, fault.Validation)
		other = req
		other.Descending = true
		try("in the other direction", root, other, fault.Validation)
		try("by somebody else", &api.Principal{ID: "other", Administrator: true}, req, fault.Validation)
		req.Cursor = first.Cursor[:len(first.Cursor)-2] + "AA"
		if _, err := w.ask(root, req); fault.CodeOf(err) != fault.Validation {
			t.Errorf("a forged cursor: %v", err)
		}
		// A place that is too long for a token is named by its document.
		long := api.DocumentsQueryRequest{OrderBy: "/long", Limit: 2}
		second, err := w.ask(root, long)
		if err != nil {
			t.Fatal(err)
		}
		long.Cursor = second.Cursor
		if resp, err := w.ask(root, long); err != nil || !slices.Equal(idsOf(resp.Documents), []string{"2", "3"}) {
			t.Errorf("%v, %v", resp, err)
		}
		w.must(put("1", `{"n":1}`))
		if _, err := w.ask(root, long); !errors.Is(err, fault.New(fault.CursorExpired, "document_changed", "")) {
			t.Errorf("after its document has changed: %v", err)
		}
		w.now += 24*3_600_000 - 1
		try("before the day is over", root, req, "")
		w.now++
		try("when the day is over", root, req, fault.CursorExpired)
	})
}

func TestAListIsInTheOrderOfIDsWithoutTombstones(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		for _, id := range []string{"b", "a", "ab", "aa", "é", "a/1", "z"} {
			w.must(put(id, `{}`))
		}
		w.must(remove("ab"))
		read := func(req api.DocumentsListRequest) (ids []string, pages int) {
			req.Partition, req.Collection, req.MaxBytes = w.ref, "people", 1<<20
			for {
				var resp *api.DocumentsListResponse
				var err error
				w.view(root, func(v *op.View) { resp, err = list(v, &req) })
				if err != nil {
					t.Fatal(err)
				}
				ids, pages = append(ids, idsOf(resp.Documents)...), pages+1
				if req.Cursor = resp.Cursor; req.Cursor == "" {
					return ids, pages
				}
			}
		}
		for _, limit := range []int64{1, 2, 100} {
			if ids, _ := read(api.DocumentsListRequest{Limit: limit}); !slices.Equal(ids, []string{"a", "a/1", "aa", "b", "z", "é"}) {
				t.Errorf("%q", ids)
			}
			if ids, _ := read(api.DocumentsListRequest{Limit: limit, Prefix: "a"}); !slices.Equal(ids, []string{"a", "a/1", "aa"}) {
				t.Errorf("%q", ids)
			}
		}
	})
}

func TestAReadLooksAtABoundedNumberOfRecordsAndGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		const n = limits.ReadRecords + 2
		for i := 0; i < n; {
			var batch []api.Mutation
			for range min(256, n-i) {
				batch = append(batch, put(fmt.Sprintf("%06d", i), `{"n":1}`))
				i++
			}
			w.must(batch...)
		}
		w.must(put("000000", `{"n":2}`), put(fmt.Sprintf("%06d", n-1), `{"n":2}`))
		req := where(eq("/n", "2"))
		req.AllowFullScan = true
		first, err := w.ask(root, req)
		if err != nil || len(first.Documents) != 1 || first.Cursor == "" || first.Examined.Records != limits.ReadRecords {
			t.Fatalf("%+v, %v", first, err)
		}
		req.Cursor = first.Cursor
		second, err := w.ask(root, req)
		if err != nil || len(second.Documents) != 1 || second.Cursor != "" || second.Examined.Records != 2 {
			t.Fatalf("%+v, %v", second, err)
		}
	})
}

func TestAnIndexedQueryLooksOnlyAtWhatItFinds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{index("n", "/n")}})
		for i := range 300 {
			w.must(put(fmt.Sprintf("%03d", i), fmt.Sprintf(`{"n":%d}`, i)))
		}
		req := where(when("/n", api.OpGreaterEqual, "100"), when("/n", api.OpLess, "110"))
		req.Partition, req.Collection, req.Limit, req.MaxBytes = w.ref, "people", 100, 1<<20
		var resp *api.DocumentsQueryResponse
		work := w.view(root, func(v *op.View) {
			var err error
			if resp, err = query(v, &req); err != nil {
				t.Fatal(err)
			}
		})
		if len(resp.Documents) != 10 || resp.Examined.Records != 10 || work.Scanned != 10 || work.Gets != 1+10 || work.Scans != 1 {
			t.Errorf("%d documents, %+v, %+v", len(resp.Documents), resp.Examined, work)
		}
	})
}
