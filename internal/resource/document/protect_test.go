package document

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

// with is a principal with rights on one protected field.
func with(path string, rights ...api.FieldRight) *api.Principal {
	return &api.Principal{ID: "worker", Tenant: "default", FieldGrants: []api.FieldGrant{{Database: "main", Resource: "people", Path: path, Rights: rights}}}
}

var nobody = &api.Principal{ID: "nobody", Tenant: "default"}

func TestProtectedFieldsAreSeenOnlyWithTheRight(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{}, "/salary", "/notes/0/text")
		const doc = `{"id":9007199254740993,"salary":1.50,"notes":[{"text":"s","n":1}]}`
		w.must(put("a", doc), put("b", `{"id":1}`))
		for _, c := range []struct {
			p        *api.Principal
			want     string
			redacted []string
		}{
			{root, doc, nil},
			{nobody, `{"id":9007199254740993,"notes":[{"n":1}]}`, []string{"/salary", "/notes/0/text"}},
			{with("/salary", api.FieldRawRead), `{"id":9007199254740993,"salary":1.50,"notes":[{"n":1}]}`, []string{"/notes/0/text"}},
			{with("/salary", api.FieldWrite, api.FieldRawUse), `{"id":9007199254740993,"notes":[{"n":1}]}`, []string{"/salary", "/notes/0/text"}},
		} {
			d, err := w.get(c.p, "a")
			if err != nil || string(d.Document) != c.want || !slices.Equal(d.Redacted, c.redacted) {
				t.Errorf("%s sees %s without %q, %v; want %s without %q", c.p.ID, d.Document, d.Redacted, err, c.want, c.redacted)
			}
			resp, err := w.ask(c.p, api.DocumentsQueryRequest{AllowFullScan: true})
			if err != nil || len(resp.Documents) != 2 || string(resp.Documents[0].Document) != c.want || !slices.Equal(resp.Documents[0].Redacted, c.redacted) {
				t.Errorf("%s finds %v, %v", c.p.ID, resp, err)
			}
			if d, _ := w.get(c.p, "b"); string(d.Document) != `{"id":1}` || d.Redacted != nil {
				t.Errorf("%s sees %s without %q", c.p.ID, d.Document, d.Redacted)
			}
			w.view(c.p, func(v *op.View) {
				l, err := list(v, &api.DocumentsListRequest{Partition: w.ref, Collection: "people", Limit: 1, MaxBytes: 1})
				if err != nil || string(l.Documents[0].Document) != c.want {
					t.Errorf("%s lists %v, %v", c.p.ID, l, err)
				}
			})
		}
	})
}

func TestProtectedFieldsAreChangedOnlyWithTheRight(t *testing.T) {
	const doc = `{"salary":5,"name":"x","job":{"grade":7,"title":"t"},"list":[1,{"s":2}]}`
	denied := []struct {
		name string
		m    api.Mutation
	}{
		{"put with the field", put("new", `{"salary":1}`)},
		{"put with a protected member", put("new", `{"job":{"grade":1}}`)},
		{"put with an equal value", put("a", doc)},
		{"put that would erase it", put("a", `{"name":"y"}`)},
		{"delete", remove("a")},
		{"set", patch("a", set("/salary", "6"))},
		{"set to the same", patch("a", set("/salary", "5"))},
		{"increment", patch("a", add("/salary", "0"))},
		{"remove", patch("a", unset("/salary"))},
		{"set where there is none", patch("b", set("/salary", "6"))},
		{"set below", patch("a", set("/salary/x", "6"))},
		{"replace what holds it", patch("a", set("/job", `{"title":"u"}`))},
		{"replace what holds it with an equal value", patch("a", set("/job", `{"grade":7}`))},
		{"remove what holds it", patch("a", unset("/job"))},
		{"set what would hold it", patch("b", set("/job", `{"grade":1}`))},
		{"make what holds it, then set it", patch("b", set("/job", `{}`), set("/job/grade", `1`))},
		{"move it up", patch("a", unset("/list/0"))},
		{"move into its place", patch("c", unset("/list/0"))},
		{"hide it behind other patches", patch("a", set("/name", `"z"`), unset("/job/title"), unset("/job"))},
	}
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{}, "/salary", "/job/grade", "/list/1/s")
		w.must(put("a", doc), put("b", `{"name":"b"}`), put("c", `{"list":[0,1,{"s":3}]}`))
		for _, c := range denied {
			w.refused(nobody, fault.PermissionDenied, "field_write", c.m)
			w.refused(with("/salary", api.FieldRawRead, api.FieldRawUse), fault.PermissionDenied, "field_write", c.m)
		}
		w.stored("a", doc, 1)
		for _, m := range []api.Mutation{
			put("new", `{"name":"n","job":{"title":"t"}}`), put("b", `{"name":"c"}`), patch("a", set("/name", `"y"`), set("/job/title", `"u"`), set("/list/0", "9"), set("/list/-", "10")),
			patch("b", set("/job", `{"title":"x"}`), unset("/job")), remove("b"), put("b", `{}`, 0),
		} {
			if _, err := w.commit(nobody, m); err != nil {
				t.Errorf("%+v: %v", m, err)
			}
		}
		w.stored("a", `{"salary":5,"name":"y","job":{"grade":7,"title":"u"},"list":[9,{"s":2},10]}`, 2)
		writer := with("/salary", api.FieldWrite)
		if _, err := w.commit(writer, put("b", `{"salary":1}`), patch("b", add("/salary", "2")), put("b", `{}`), patch("a", set("/salary", "6"))); err != nil {
			t.Errorf("with the right: %v", err)
		}
		w.refused(writer, fault.PermissionDenied, "field_write", patch("a", set("/job/grade", "1")))
	})
}

func TestProtectedFieldsAreUsedInQueriesOnlyWithTheRight(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{
			index("job-salary", "/job", "/salary"), index("job", "/job"), index("salary", "/salary"),
		}}, "/salary")
		for i := range 4 {
			w.must(put(fmt.Sprint(i), fmt.Sprintf(`{"job":"x","salary":%d}`, 987654320+9-i)))
		}
		for name, req := range map[string]api.DocumentsQueryRequest{
			"filter": where(eq("/salary", "1")), "order": {OrderBy: "/salary"}, "filter below": where(eq("/salary/x", "1")),
			"an index by name": {Index: "job-salary", Where: []api.Condition{eq("/job", `"x"`)}},
		} {
			req.AllowFullScan = true
			if _, err := w.ask(nobody, req); fault.CodeOf(err) != fault.PermissionDenied {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := w.ask(with("/salary", api.FieldRawUse), req); err != nil {
				t.Errorf("%s with the right: %v", name, err)
			}
		}
		// The order of an index tells of its fields, so another one is chosen.
		resp, err := w.ask(nobody, where(eq("/job", `"x"`)))
		if err != nil || resp.Index != "job" || !slices.Equal(idsOf(resp.Documents), []string{"0", "1", "2", "3"}) {
			t.Errorf("%+v, %v", resp, err)
		}
		// Who may filter by a field but not see it gets no cursor that holds it.
		blind, seeing := with("/salary", api.FieldRawUse), with("/salary", api.FieldRawUse, api.FieldRawRead)
		req := api.DocumentsQueryRequest{OrderBy: "/salary", Limit: 1}
		for p, holds := range map[*api.Principal]bool{blind: false, seeing: true} {
			ids, _ := w.pages(p, req)
			if !slices.Equal(ids, []string{"3", "2", "1", "0"}) {
				t.Errorf("pages: %q", ids)
			}
			resp, err := w.ask(p, req)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := base64.RawURLEncoding.DecodeString(resp.Cursor)
			if err != nil {
				t.Fatal(err)
			}
			// 987654326 as pairs of digits, each one higher.
			if got := strings.Contains(string(raw), string([]byte{99, 77, 55, 33, 61})); got != holds {
				t.Errorf("the cursor holds the value: %v, want %v", got, holds)
			}
		}
	})
}
