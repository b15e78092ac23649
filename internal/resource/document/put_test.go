package document

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/document/store"
	"github.com/keyload/keyload/internal/table"
)

func TestRevisionsRiseWithEveryChangeAndOutliveADeletion(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		for i, m := range []api.Mutation{
			put("a", `{"n":1}`), put("a", `{"n":1}`), patch("a", set("/n", "2")), remove("a"), put("a", `{"n":3}`), remove("a"), put("a", `{}`),
		} {
			if got := w.must(m); got[0] != uint64(i+1) {
				t.Errorf("change %d gives revision %d", i, got[0])
			}
		}
		w.stored("a", `{}`, 7)
		w.must(put("b", `{}`))
		w.stored("b", `{}`, 1)
	})
}

func TestExpectedRevisionsAreExact(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		w.refused(root, fault.RevisionConflict, "revision", put("a", `{}`, 1))
		w.must(put("a", `{}`, 0))
		w.refused(root, fault.RevisionConflict, "exists", put("a", `{}`, 0))
		w.refused(root, fault.RevisionConflict, "revision", put("a", `{}`, 2))
		w.must(put("a", `{"n":2}`, 1))
		stale := patch("a", set("/n", "9"))
		stale.PatchDocument.ExpectedRevision = new(uint64)
		*stale.PatchDocument.ExpectedRevision = 1
		w.refused(root, fault.RevisionConflict, "revision", stale)
		*stale.PatchDocument.ExpectedRevision = 2
		w.must(stale)
		w.refused(root, fault.RevisionConflict, "revision", remove("a", 2))
		w.refused(root, fault.RevisionConflict, "exists", remove("a", 0))
		w.must(remove("a", 3))
		// A deleted document is as absent as one that never was.
		w.refused(root, fault.RevisionConflict, "revision", put("a", `{}`, 4))
		w.refused(root, fault.NotFound, "unknown_document", remove("a"))
		w.refused(root, fault.NotFound, "unknown_document", remove("a", 4))
		w.refused(root, fault.NotFound, "unknown_document", patch("a", set("/n", "1")))
		w.refused(root, fault.NotFound, "unknown_document", remove("never"))
		if _, err := w.get(root, "a"); !errors.Is(err, fault.New(fault.NotFound, "unknown_document", "")) {
			t.Errorf("a deleted document: %v", err)
		}
		if got := w.must(put("a", `{}`, 0)); got[0] != 5 {
			t.Errorf("after a deletion the document has revision %d, want 5", got[0])
		}
	})
}

func TestARefusedMutationRefusesItsWholeBatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{{Name: "n", Paths: []string{"/n"}}}})
		w.must(put("a", `{"n":1}`))
		before := w.check().Counts
		w.refused(root, fault.NotFound, "unknown_document", put("a", `{"n":2}`), put("b", `{"n":3}`), remove("a"), remove("c"))
		w.stored("a", `{"n":1}`, 1)
		if after := w.check().Counts; fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("counts were %v and are %v", before, after)
		}
		// Within a batch each mutation sees the ones before it.
		if got := w.must(put("b", `{"n":5}`, 0), patch("b", add("/n", "1")), remove("b", 2), put("b", `{"n":7}`, 0)); fmt.Sprint(got) != "[1 2 3 4]" {
			t.Errorf("revisions %v", got)
		}
		w.stored("b", `{"n":7}`, 4)
	})
}

func TestDocumentsAreKeptAsTheyWereSent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		for in, want := range map[string]string{
			` { "b" : 9007199254740993 , "a" : [ 1.50 , "x y" ] } `: `{"b":9007199254740993,"a":[1.50,"x y"]}`,
			`{"n":123456789012345678901234567890.10e-400}`:          `{"n":123456789012345678901234567890.10e-400}`,
			`{"\u0061":"\u00e9\/"}`:                                 `{"\u0061":"\u00e9\/"}`,
			`{}`:                                                    `{}`,
		} {
			w.must(put("a", in))
			if d, err := w.get(root, "a"); err != nil || string(d.Document) != want {
				t.Errorf("%s is kept as %s, %v; want %s", in, d.Document, err, want)
			}
		}
	})
}

func TestDocumentsThatAreNotWhatTheyMustBeAreRefused(t *testing.T) {
	nested := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	sized := func(n int) string { return `{"a":"` + strings.Repeat("x", n-8) + `"}` }
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		for name, c := range map[string]struct {
			doc     string
			refused bool
		}{
			"an object": {`{}`, false}, "a list": {`[]`, true}, "a text": {`"x"`, true}, "null": {`null`, true}, "no JSON": {`{`, true},
			"two values": {`{}{}`, true}, "a repeated name": {`{"a":1,"a":2}`, true}, "a name repeated with an escape": {`{"a":1,"\u0061":2}`, true},
			"invalid UTF-8": {"{\"a\":\"\xff\"}", true}, "half a surrogate pair": {`{"a":"\ud800"}`, true},
			"31 levels": {nested(31), false}, "32 levels": {nested(32), false}, "33 levels": {nested(33), true},
			"one byte below 1 MiB": {sized(limits.DocumentBytes - 1), false}, "1 MiB": {sized(limits.DocumentBytes), false}, "one byte above": {sized(limits.DocumentBytes + 1), true},
		} {
			_, err := w.commit(root, put("a", c.doc))
			if refused := fault.CodeOf(err) == fault.Validation; refused != c.refused || err != nil && !refused {
				t.Errorf("%s: %v, want a refusal: %v", name, err, c.refused)
			}
			if err == nil {
				if d, _ := w.get(root, "a"); string(d.Document) != c.doc {
					t.Errorf("%s is kept as %.100s", name, d.Document)
				}
			}
		}
	})
}

func TestWrongCollectionsAreToldApart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.refused(root, fault.NotFound, "unknown_resource", put("a", `{}`))
		w.define("people", api.CollectionPolicy{})
		w.must(put("a", `{}`))
		w.defs["people"].Kind = api.KindQueue
		w.define("people", api.CollectionPolicy{})
		w.refused(root, fault.Validation, "wrong_kind", put("a", `{}`))
		w.defs["people"].Kind, w.defs["people"].Domain = api.KindCollection, "other"
		w.define("people", api.CollectionPolicy{})
		w.refused(root, fault.Conflict, "foreign_domain", put("a", `{}`))
		w.defs["people"].Domain = "main"
		w.define("people", api.CollectionPolicy{})
	})
}

func TestTombstonesGoWhenTheirRetentionIsOverInBoundedSteps(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{TombstoneRetentionSeconds: 10})
		start := w.now
		for i := range 7 {
			id := fmt.Sprint("d", i)
			w.must(put(id, `{"n":1}`), remove(id))
			w.now += 1000
		}
		w.must(put("d3", `{"back":true}`)) // no tombstone any more
		w.now = start + 10_000 - 1
		if n := w.tick(256); n != 0 {
			t.Errorf("%d owners are due one millisecond early", n)
		}
		w.now = start + 10_000
		w.tick(256)
		if got := w.check().Counts["tombstones"]; got != 5 {
			t.Errorf("%d tombstones are left after the first is due, want 5", got)
		}
		if got := w.must(put("d0", `{}`)); got[0] != 1 {
			t.Errorf("a forgotten document comes back at revision %d, want 1", got[0])
		}
		if got := w.must(put("d1", `{}`)); got[0] != 3 {
			t.Errorf("a document that is still remembered comes back at revision %d, want 3", got[0])
		}
		// A longer retention holds for what is deleted already.
		w.define("people", api.CollectionPolicy{TombstoneRetentionSeconds: 20})
		w.now = start + 19_000
		w.tick(256)
		if got := w.check().Counts["tombstones"]; got != 4 {
			t.Errorf("%d tombstones are left, want 4", got)
		}
		w.now = start + 100_000
		before := w.tx.Work()
		w.tick(4)
		work := w.tx.Work()
		if got := w.check().Counts["tombstones"]; got != 2 {
			t.Errorf("a step of 4 rows leaves %d of 4 tombstones, want 2", got)
		}
		if n := work.Deletes - before.Deletes; n != 2*2+1 { // documents and places, and the due row
			t.Errorf("the step deleted %d rows", n)
		}
		for w.tick(4) > 0 {
		}
		if got := w.check().Counts["tombstones"]; got != 0 {
			t.Errorf("%d tombstones are left in the end", got)
		}
	})
}

func TestACollectionWithoutRowsLeavesNoHead(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		w.must(put("a", `{}`))
		w.must(remove("a"))
		w.now += 100_000
		w.tick(256)
		w.view(root, func(v *op.View) {
			if held, err := w.registry.Holds(v.R, api.KindCollection, table.Owner{Space: w.space, Resource: 1}); held || err != nil {
				t.Errorf("rows are left: %v, %v", held, err)
			}
		})
	})
}

func TestADeletedCollectionIsPurgedInBoundedStepsAndNothingElse(t *testing.T) {
	inWorld(t, func(w *world) {
		indexes := []api.IndexDefinition{{Name: "n", Paths: []string{"/n"}}, {Name: "u", Paths: []string{"/u"}, Unique: true}}
		w.define("people", api.CollectionPolicy{Indexes: indexes})
		w.define("others", api.CollectionPolicy{Indexes: indexes})
		for i := range 10 {
			id := fmt.Sprint(i)
			other := put(id, fmt.Sprintf(`{"n":1,"u":%d}`, i))
			other.PutDocument.Collection = "others"
			w.must(put(id, fmt.Sprintf(`{"n":1,"u":%d}`, i)), other)
		}
		w.must(remove("3"), remove("4"))
		owner := table.Owner{Space: w.space, Resource: 1}
		rows := 1 + 10 + 2*8 + 2 // head, documents and tombstones, entries, places of tombstones
		total := 0
		for steps := 0; ; steps++ {
			var n int
			if err := w.do(root, func(c *op.Ctx) (err error) {
				n, err = store.Purge(c, owner, 5)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			total += n
			if n > 5 || steps > rows {
				t.Fatalf("step %d removed %d rows", steps, n)
			}
			if n < 5 {
				break
			}
		}
		if total != rows {
			t.Errorf("%d rows were removed, want %d", total, rows)
		}
		w.view(root, func(v *op.View) {
			if held, err := w.registry.Holds(v.R, api.KindCollection, owner); held || err != nil {
				t.Errorf("rows are left: %v, %v", held, err)
			}
		})
		if c := w.check().Counts; c["documents"] != 10 || c["indexEntries"] != 20 {
			t.Errorf("the other collection has %v", c)
		}
	})
}

func TestEveryWriteTouchesTheStatedRows(t *testing.T) {
	inWorld(t, func(w *world) {
		w.define("people", api.CollectionPolicy{})
		w.define("indexed", api.CollectionPolicy{Indexes: []api.IndexDefinition{
			{Name: "a", Paths: []string{"/a"}}, {Name: "b", Paths: []string{"/b", "/a"}}, {Name: "u", Paths: []string{"/u"}, Unique: true},
		}})
		in := func(m api.Mutation) api.Mutation {
			for _, c := range []*string{collectionOf(&m)} {
				*c = "indexed"
			}
			return m
		}
		w.must(put("x", `{}`), in(put("x", `{}`))) // the heads and definitions are in memory from here on
		for _, c := range []struct {
			name                 string
			m                    api.Mutation
			reads, puts, deletes uint64
		}{
			{"put, new", put("n", `{"a":1}`), 1, 2, 0},
			{"put, replacing", put("n", `{"a":2}`), 1, 2, 0},
			{"patch", patch("n", set("/a", "3")), 1, 2, 0},
			{"delete, the first", remove("n"), 1, 4, 0},
			{"delete, another", remove("x"), 1, 3, 0},
			{"put over a tombstone", put("n", `{"a":1}`), 1, 2, 1},
			{"put into 3 indexes, new", in(put("n", `{"a":1,"b":2,"u":3}`)), 2, 5, 0},
			{"put into 3 indexes, nothing indexed changes", in(put("n", `{"a":1.0,"b":2,"u":3,"c":1}`)), 1, 2, 0},
			{"put into 3 indexes, one changes", in(put("n", `{"a":1,"b":3,"u":3}`)), 1, 3, 1},
			{"patch of the unique field", in(patch("n", set("/u", "4"))), 2, 3, 1},
			{"delete from 3 indexes, the first", in(remove("n")), 1, 4, 3},
		} {
			before := w.tx.Work()
			w.must(c.m)
			after := w.tx.Work()
			reads, puts, deletes := after.Gets-before.Gets, after.Puts-before.Puts, after.Deletes-before.Deletes
			if reads != c.reads || puts != c.puts || deletes != c.deletes || after.Scans != before.Scans {
				t.Errorf("%s reads %d rows, writes %d, deletes %d, scans %d times; want %d, %d, %d and 0",
					c.name, reads, puts, deletes, after.Scans-before.Scans, c.reads, c.puts, c.deletes)
			}
		}
	})
}

func collectionOf(m *api.Mutation) *string {
	switch {
	case m.PutDocument != nil:
		return &m.PutDocument.Collection
	case m.PatchDocument != nil:
		return &m.PatchDocument.Collection
	}
	return &m.DeleteDocument.Collection
}

func TestTheCheckFindsEachKindOfDamage(t *testing.T) {
	w := newWorld(t)
	defer w.close()
	w.define("people", api.CollectionPolicy{Indexes: []api.IndexDefinition{{Name: "n", Paths: []string{"/n"}}, {Name: "u", Paths: []string{"/n"}, Unique: true}}})
	w.must(put("a", `{"n":1}`), put("b", `{"n":2}`), put("c", `{"n":3}`), remove("c"))
	w.check()
	for _, c := range []struct {
		id   table.ID
		want string
	}{
		{table.Document, "document-counters"}, {table.DocumentHead, "document-owner"}, {table.DocumentIndex, "document-entries"},
		{table.DocumentUniq, "document-entries"}, {table.DocumentTomb, "document-tombstones"}, {table.Due, "due"},
	} {
		var key, value []byte
		if err := w.tx.Scan([]byte{byte(c.id)}, []byte{byte(c.id) + 1}, false, func(k, v []byte) (bool, error) {
			key, value = append([]byte(nil), k...), append([]byte{}, v...)
			return false, nil
		}); err != nil || key == nil {
			t.Fatalf("table %d: %v", c.id, err)
		}
		change := func(fn func()) {
			if err := w.do(root, func(*op.Ctx) error { fn(); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		change(func() { w.tx.Delete(key) })
		if _, text := w.audit(); !strings.Contains(text, c.want+":") {
			t.Errorf("without a row of table %d the check finds %q, want %s", c.id, text, c.want)
		}
		change(func() { w.tx.Put(key, value) })
		w.check()
		if c.id == table.DocumentIndex || c.id == table.DocumentTomb {
			extra := append(append([]byte(nil), key...), 'z')
			change(func() { w.tx.Put(extra, value) })
			if _, text := w.audit(); !strings.Contains(text, c.want+":") {
				t.Errorf("with a row too many in table %d the check finds %q, want %s", c.id, text, c.want)
			}
			change(func() { w.tx.Delete(extra) })
		}
	}
}
