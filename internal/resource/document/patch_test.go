package document

import (
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
)

func TestPatchesChangeTheirFieldsAndNothingElse(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		for _, c := range []struct {
			before  string
			patches []api.Patch
			after   string
		}{
			{`{"a":1.50,"b":9007199254740993}`, []api.Patch{set("/c", "1")}, `{"a":1.50,"b":9007199254740993,"c":1}`},
			{`{"a":1}`, []api.Patch{set("/a", ` { "x" : [ 1 , 2 ] } `)}, `{"a":{"x":[1,2]}}`},
			{`{"a":1}`, []api.Patch{set("/b", "{}"), set("/b/c", "2"), set("/a", "3")}, `{"a":3,"b":{"c":2}}`},
			{`{"a":[1,2,3]}`, []api.Patch{unset("/a/0"), set("/a/-", "4"), set("/a/0", "9")}, `{"a":[9,3,4]}`},
			{`{"a":{"b":{"c":1},"d":2}}`, []api.Patch{unset("/a/b")}, `{"a":{"d":2}}`},
			{`{"a/b":1,"m~n":2}`, []api.Patch{unset("/a~1b"), set("/m~0n", "3")}, `{"m~n":3}`},
			{`{"n":9007199254740993}`, []api.Patch{add("/n", "1")}, `{"n":9007199254740994}`},
			{`{"n":9223372036854775806}`, []api.Patch{add("/n", "1")}, `{"n":9223372036854775807}`},
			{`{"n":-9223372036854775807}`, []api.Patch{add("/n", "-1")}, `{"n":-9223372036854775808}`},
			{`{"n":9223372036854775807}`, []api.Patch{add("/n", "-9223372036854775808")}, `{"n":-1}`},
			{`{"n":5}`, []api.Patch{add("/n", "0"), add("/n", "-7")}, `{"n":-2}`},
			{`{}`, []api.Patch{add("/n", "3"), add("/n", "4")}, `{"n":7}`},
			{`{"a":[1]}`, []api.Patch{add("/a/0", "1")}, `{"a":[2]}`},
		} {
			w.must(put("x", c.before))
			if _, err := w.commit(root, patch("x", c.patches...)); err != nil {
				t.Errorf("%v on %s: %v", c.patches, c.before, err)
				continue
			}
			if d, _ := w.get(root, "x"); string(d.Document) != c.after {
				t.Errorf("%v on %s gives %s, want %s", c.patches, c.before, d.Document, c.after)
			}
		}
	})
}

func TestPatchesThatDoNotFitAreRefusedAndChangeNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		const before = `{"n":9223372036854775807,"f":1.0,"e":1e2,"big":9223372036854775808,"t":"5","a":[1],"o":{},"m":-9223372036854775808}`
		w.must(put("x", before))
		for _, c := range []struct {
			p      api.Patch
			code   fault.Code
			reason string
		}{
			{add("/n", "1"), fault.Conflict, "integer_overflow"},
			{add("/m", "-1"), fault.Conflict, "integer_overflow"},
			{add("/f", "1"), fault.Conflict, "not_an_integer"},
			{add("/e", "1"), fault.Conflict, "not_an_integer"},
			{add("/big", "1"), fault.Conflict, "not_an_integer"},
			{add("/t", "1"), fault.Conflict, "not_an_integer"},
			{add("/o", "1"), fault.Conflict, "not_an_integer"},
			{add("/a/1", "1"), fault.Conflict, "no_such_field"},
			{add("/a/-", "1"), fault.Conflict, "no_such_field"},
			{add("/x/y", "1"), fault.Conflict, "no_such_parent"},
			{add("/n", "1.0"), fault.Validation, "invalid_field"},
			{add("/n", "1e0"), fault.Validation, "invalid_field"},
			{add("/n", `"1"`), fault.Validation, "invalid_field"},
			{add("/n", "9223372036854775808"), fault.Validation, "invalid_field"},
			{unset("/x"), fault.Conflict, "no_such_field"},
			{unset("/a/1"), fault.Conflict, "no_such_field"},
			{unset("/x/y"), fault.Conflict, "no_such_parent"},
			{set("/x/y", "1"), fault.Conflict, "no_such_parent"},
			{set("/t/y", "1"), fault.Conflict, "no_such_parent"},
			{set("/a/2", "1"), fault.Conflict, "no_such_place"},
			{set("/a/x", "1"), fault.Conflict, "no_such_place"},
			{set("a", "1"), fault.Validation, "invalid_field"},
			{set("", "1"), fault.Validation, "invalid_field"},
			{set("/a~2", "1"), fault.Validation, "invalid_field"},
			{set("/a", ""), fault.Validation, "invalid_field"},
			{set("/a", `{"x":1,"x":2}`), fault.Validation, "invalid_field"},
		} {
			w.refused(root, c.code, c.reason, patch("x", set("/ok", "1"), c.p))
			w.stored("x", before, 1)
		}
	})
}

func TestAPatchedDocumentKeepsTheBounds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		// {"a":"","b":""} and what is in it
		room := limits.DocumentBytes - len(`{"a":"","b":""}`)
		for more, refused := range map[int]bool{-1: false, 0: false, 1: true} {
			w.must(put("x", `{"a":"`+strings.Repeat("x", 1000)+`"}`))
			_, err := w.commit(root, patch("x", set("/b", `"`+strings.Repeat("y", room-1000+more)+`"`)))
			if got := fault.From(err); (got != nil) != refused || refused && got.Reason != "document_too_large" {
				t.Errorf("%d bytes more than 1 MiB: %v", more, err)
			}
		}
		for levels, refused := range map[int]bool{15: false, 16: false, 17: true} {
			w.must(put("x", strings.Repeat(`{"a":`, 15)+`{}`+strings.Repeat(`}`, 15)))
			_, err := w.commit(root, patch("x", set(strings.Repeat("/a", 16), strings.Repeat("[", levels)+strings.Repeat("]", levels))))
			if got := fault.From(err); (got != nil) != refused || refused && got.Reason != "document_too_deep" {
				t.Errorf("16 levels of objects and %d of arrays: %v", levels, err)
			}
		}
	})
}

func TestADocumentIsHeldToTheSchemaOfItsCollectionOnEveryWrite(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Schema: api.JSON(`{"required":["name"],"properties":{"age":{"type":"integer","minimum":0}}}`)})
		w.refused(root, fault.Validation, "schema_violated", put("x", `{}`))
		w.refused(root, fault.Validation, "schema_violated", put("x", `{"name":"x","age":-1}`))
		w.must(put("x", `{"name":"x","age":3}`))
		w.refused(root, fault.Validation, "schema_violated", patch("x", unset("/name")))
		w.refused(root, fault.Validation, "schema_violated", patch("x", add("/age", "-4")))
		w.must(patch("x", add("/age", "-3")))
		_, err := w.commit(root, put("x", `{"name":"x","age":"secret"}`))
		if f := fault.From(err); f == nil || len(f.Violations) != 1 || f.Violations[0].Path != "/age" || strings.Contains(f.Error(), "secret") {
			t.Errorf("the refusal is %v with %v", err, f)
		}
		// Another schema holds from its configuration on, for what is written then.
		w.define("people", api.CollectionPolicy{Schema: api.JSON(`{"required":["email"]}`)})
		w.stored("x", `{"name":"x","age":0}`, 2)
		w.refused(root, fault.Validation, "schema_violated", patch("x", set("/age", "1")))
		w.must(patch("x", set("/email", `"e"`)))
		w.must(remove("x"))
	})
}

func TestPoliciesThatCannotWorkAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		p      *api.CollectionPolicy
		reason string
	}{
		"none":                  {nil, ""},
		"empty":                 {&api.CollectionPolicy{}, ""},
		"a good one":            {&api.CollectionPolicy{Schema: api.JSON(`{"type":"object"}`), Indexes: []api.IndexDefinition{{Name: "a", Paths: []string{"/a", "/b"}}}}, ""},
		"a remote reference":    {&api.CollectionPolicy{Schema: api.JSON(`{"$ref":"https://example.com/s"}`)}, "invalid_schema"},
		"a schema that is none": {&api.CollectionPolicy{Schema: api.JSON(`{"type":3}`)}, "invalid_schema"},
		"a field twice":         {&api.CollectionPolicy{Indexes: []api.IndexDefinition{{Name: "a", Paths: []string{"/a", "/b", "/a"}}}}, "invalid_field"},
	} {
		err := CheckPolicy(c.p)
		if f := fault.From(err); (f == nil) != (c.reason == "") || f != nil && (f.Reason != c.reason || f.Code != fault.Validation) {
			t.Errorf("%s: %v, want %q", name, err, c.reason)
		}
	}
}
