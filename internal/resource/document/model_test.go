package document

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// Few ids, fields and values, so that histories meet.
var (
	modelIDs    = []string{"a", "b", "c", "d", "e/f"}
	modelValues = []string{
		`null`, `true`, `false`, `0`, `1`, `1.0`, `2`, `-1`, `9007199254740992`, `9007199254740993`, `9223372036854775807`,
		`18446744073709551615`, `1.5`, `""`, `"x"`, `"xy"`, `"\u0000"`, `"\u0078"`,
	}
	modelNested  = []string{`{}`, `[]`, `{"a":1}`, `[1,2]`, `[{"a":1}]`}
	modelPaths   = []string{"/a", "/b", "/u", "/a/a", "/b/0", "/b/-", "/b/0/a", "/b/2"}
	modelIndexes = []api.IndexDefinition{index("a", "/a"), index("ab", "/a", "/b"), unique("u", "/u"), unique("ub", "/b", "/u"), index("deep", "/a/a", "/b/0")}
)

func drawDoc(t *rapid.T) string {
	doc := ""
	for _, name := range []string{"a", "b", "u"} {
		if !rapid.Bool().Draw(t, "has "+name) {
			continue
		}
		if doc != "" {
			doc += ","
		}
		doc += fmt.Sprintf(`"%s":%s`, name, drawValue(t, name))
	}
	return "{" + doc + "}"
}

func drawValue(t *rapid.T, label string) string {
	if rapid.IntRange(0, 3).Draw(t, label+" nested") == 0 {
		return rapid.SampledFrom(modelNested).Draw(t, label)
	}
	return rapid.SampledFrom(modelValues).Draw(t, label)
}

func drawMutation(t *rapid.T) api.Mutation {
	id := rapid.SampledFrom(modelIDs).Draw(t, "id")
	var expected []uint64
	if rapid.IntRange(0, 3).Draw(t, "expects") == 0 {
		expected = []uint64{uint64(rapid.IntRange(0, 4).Draw(t, "expected"))}
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return remove(id, expected...)
	case 1, 2:
		var patches []api.Patch
		for range rapid.IntRange(1, 3).Draw(t, "patches") {
			path := rapid.SampledFrom(modelPaths).Draw(t, "path")
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				patches = append(patches, unset(path))
			case 1:
				patches = append(patches, add(path, rapid.SampledFrom([]string{"1", "-1", "0", "9223372036854775807", "-9223372036854775808"}).Draw(t, "amount")))
			default:
				patches = append(patches, set(path, drawValue(t, "value")))
			}
		}
		m := patch(id, patches...)
		if expected != nil {
			m.PatchDocument.ExpectedRevision = &expected[0]
		}
		return m
	default:
		return put(id, drawDoc(t), expected...)
	}
}

func drawQuery(t *rapid.T) api.DocumentsQueryRequest {
	req := api.DocumentsQueryRequest{AllowFullScan: true, Descending: rapid.Bool().Draw(t, "descending")}
	for range rapid.IntRange(0, 3).Draw(t, "conditions") {
		o := rapid.SampledFrom([]api.ConditionOp{api.OpEqual, api.OpEqual, api.OpLess, api.OpLessEqual, api.OpGreater, api.OpGreaterEqual, api.OpPrefix}).Draw(t, "op")
		value := rapid.SampledFrom(modelValues).Draw(t, "value")
		if o == api.OpPrefix {
			value = rapid.SampledFrom([]string{`""`, `"x"`, `"xy"`, `"\u0000"`}).Draw(t, "prefix")
		}
		path := rapid.SampledFrom([]string{"/a", "/b", "/u", "/a/a", "/b/0"}).Draw(t, "path")
		req.Where = append(req.Where, when(path, o, value))
	}
	if rapid.IntRange(0, 3).Draw(t, "named") == 0 {
		req.Index = rapid.SampledFrom(modelIndexes).Draw(t, "index").Name
	}
	if rapid.IntRange(0, 3).Draw(t, "ordered") == 0 {
		req.OrderBy = rapid.SampledFrom([]string{"/a", "/b", "/u"}).Draw(t, "order")
	}
	return req
}

func TestACollectionBehavesAsItsPlainTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.close()
		w.define("people", api.CollectionPolicy{Indexes: modelIndexes, TombstoneRetentionSeconds: 10})
		m := &twin{docs: map[string]twinDoc{}, indexes: modelIndexes, retain: 10_000}
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) { m = commitBoth(t, w, m) },
			"wait": func(t *rapid.T) {
				w.now += int64(rapid.IntRange(0, 12).Draw(t, "seconds")) * 1000
				w.tick(256)
				m.sweep(w.now)
			},
			"query": func(t *rapid.T) { queryBoth(t, w, m) },
			"":      func(t *rapid.T) { compareBoth(t, w, m) },
		})
	})
}

// commitBoth applies one batch to both and wants equal answers.
func commitBoth(t *rapid.T, w *world, m *twin) *twin {
	var batch []api.Mutation
	for range rapid.IntRange(1, 3).Draw(t, "batch") {
		batch = append(batch, drawMutation(t))
	}
	next := m.clone()
	var want []uint64
	var refusal fault.Code
	for _, mutation := range batch {
		revision, code := next.apply(mutation, w.now)
		if refusal = code; code != "" {
			next, want = m, nil
			break
		}
		want = append(want, revision)
	}
	got, err := w.commit(root, batch...)
	if fault.CodeOf(err) != refusal || err != nil && refusal == "" || !slices.Equal(got, want) {
		t.Fatalf("the batch gives %v, %v; the twin says %v, %q", got, err, want, refusal)
	}
	return next
}

// queryBoth asks both the same, page by page.
func queryBoth(t *rapid.T, w *world, m *twin) {
	req := drawQuery(t)
	req.Limit = int64(rapid.IntRange(1, 4).Draw(t, "limit"))
	resp, err := w.ask(root, req)
	if f := fault.From(err); f != nil && f.Reason == "no_index_for_order" {
		return
	}
	if err != nil {
		t.Fatalf("query: %v", err)
	}
	got, _ := w.pages(root, req)
	if want := m.find(req.Where, resp.Index, req.Descending); !slices.Equal(got, want) {
		t.Fatalf("%+v finds %q by index %q; the twin finds %q", req, got, resp.Index, want)
	}
}

// compareBoth wants equal documents and no finding of the check.
func compareBoth(t *rapid.T, w *world, m *twin) {
	if _, text := w.audit(); text != "" {
		t.Fatalf("the check finds:\n%s", text)
	}
	for _, id := range modelIDs {
		want := m.docs[id]
		d, err := w.get(root, id)
		if (err == nil) != (want.value != nil) {
			t.Fatalf("document %s: %v; the twin holds %v", id, err, want.value)
		}
		if err == nil && (!reflect.DeepEqual(decode(d.Document), want.value) || d.Revision != want.revision || int64(d.UpdatedAt) != want.at) {
			t.Fatalf("document %s is %s at revision %d of %d; the twin holds %v", id, d.Document, d.Revision, d.UpdatedAt, want)
		}
	}
}
