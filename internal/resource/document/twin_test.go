package document

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// twin is a collection as plainly as it can be written: maps, fractions, and a
// look at everything for every question.
type twin struct {
	docs    map[string]twinDoc
	indexes []api.IndexDefinition
	retain  int64 // milliseconds
}

type twinDoc struct {
	revision uint64
	value    any // nil: deleted
	at       int64
}

func (t *twin) clone() *twin {
	c := *t
	c.docs = map[string]twinDoc{}
	for id, d := range t.docs {
		d.value = copyValue(d.value)
		c.docs[id] = d
	}
	return &c
}

func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = copyValue(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyValue(v[i])
		}
		return out
	}
	return v
}

func decode(text []byte) any {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

// apply carries out one mutation and answers the revision, or the code of the
// refusal; after a refusal the twin must be thrown away.
func (t *twin) apply(m api.Mutation, now int64) (uint64, fault.Code) {
	var id string
	var expected *uint64
	switch {
	case m.PutDocument != nil:
		id, expected = m.PutDocument.ID, m.PutDocument.ExpectedRevision
	case m.PatchDocument != nil:
		id, expected = m.PatchDocument.ID, m.PatchDocument.ExpectedRevision
	default:
		id, expected = m.DeleteDocument.ID, m.DeleteDocument.ExpectedRevision
	}
	d := t.docs[id]
	if d.value == nil && m.PutDocument == nil {
		return 0, fault.NotFound
	}
	current := d.revision
	if d.value == nil {
		current = 0
	}
	if expected != nil && *expected != current {
		return 0, fault.RevisionConflict
	}
	next := twinDoc{d.revision + 1, nil, now}
	switch {
	case m.PutDocument != nil:
		next.value = decode(m.PutDocument.Document)
	case m.PatchDocument != nil:
		next.value = d.value
		for _, p := range m.PatchDocument.Patches {
			if !patchValue(&next.value, strings.Split(p.Path[1:], "/"), p) {
				return 0, fault.Conflict
			}
		}
	}
	t.docs[id] = next
	if next.value != nil && t.clashes(id) {
		return 0, fault.Conflict
	}
	return next.revision, ""
}

// patchValue changes the field at a path; false when it does not fit.
func patchValue(v *any, path []string, p api.Patch) bool {
	if len(path) > 1 {
		child, ok := field(*v, path[0])
		if !ok || !patchValue(&child, path[1:], p) {
			return false
		}
		putIn(v, path[0], child)
		return true
	}
	old, exists := field(*v, path[0])
	list, isList := (*v).([]any)
	object, isObject := (*v).(map[string]any)
	switch {
	case !isList && !isObject:
		return false
	case p.Op == api.PatchRemove && isObject:
		delete(object, path[0])
		return exists
	case p.Op == api.PatchRemove:
		if exists {
			i, _ := strconv.Atoi(path[0])
			*v = slices.Delete(list, i, i+1)
		}
		return exists
	case p.Op == api.PatchSet && !exists && isList:
		if path[0] != "-" && path[0] != strconv.Itoa(len(list)) {
			return false
		}
		*v = append(list, decode(p.Value))
		return true
	case p.Op == api.PatchSet:
		putIn(v, path[0], decode(p.Value))
		return true
	case !exists:
		old = json.Number("0")
		if isList {
			return false
		}
	}
	n, ok := old.(json.Number)
	a, valid := new(big.Int).SetString(string(n), 10)
	if !ok || !valid || !a.IsInt64() {
		return false
	}
	b, _ := new(big.Int).SetString(string(p.Value), 10)
	if a.Add(a, b); !a.IsInt64() {
		return false
	}
	putIn(v, path[0], json.Number(a.String()))
	return true
}

func putIn(v *any, token string, value any) {
	switch x := (*v).(type) {
	case map[string]any:
		x[token] = value
	case []any:
		i, _ := strconv.Atoi(token)
		x[i] = value
	}
}

func field(v any, token string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		f, ok := v[token]
		return f, ok
	case []any:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != token {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// scalarAt is the scalar at a pointer; ok is false for what is none.
func scalarAt(v any, pointer string) (s any, ok bool) {
	for _, token := range strings.Split(pointer[1:], "/") {
		if v, ok = field(v, token); !ok {
			return nil, false
		}
	}
	switch v.(type) {
	case map[string]any, []any:
		return nil, false
	}
	return v, true
}

// rank is the place of a type in the order of scalars.
func rank(v any, ok bool) int {
	if !ok {
		return 0
	}
	switch v := v.(type) {
	case bool:
		if v {
			return 3
		}
		return 2
	case json.Number:
		return 4
	case string:
		return 5
	}
	return 1
}

func compareScalars(a any, aok bool, b any, bok bool) int {
	if c := cmp.Compare(rank(a, aok), rank(b, bok)); c != 0 || !aok {
		return c
	}
	switch a := a.(type) {
	case json.Number:
		x, _ := new(big.Rat).SetString(string(a))
		y, _ := new(big.Rat).SetString(string(b.(json.Number)))
		return x.Cmp(y)
	case string:
		return strings.Compare(a, b.(string))
	}
	return 0
}

func (t *twin) clashes(id string) bool {
	for _, ix := range t.indexes {
		for other, d := range t.docs {
			if !ix.Unique || other == id || d.value == nil {
				continue
			}
			same := true
			for _, p := range ix.Paths {
				a, aok := scalarAt(t.docs[id].value, p)
				b, bok := scalarAt(d.value, p)
				same = same && aok && bok && compareScalars(a, aok, b, bok) == 0
			}
			if same {
				return true
			}
		}
	}
	return false
}

func satisfies(v any, c api.Condition) bool {
	a, ok := scalarAt(v, c.Path)
	b := decode(c.Value)
	if !ok {
		return false
	}
	if c.Op == api.OpPrefix {
		s, isText := a.(string)
		return isText && strings.HasPrefix(s, b.(string))
	}
	x, y := rank(a, true), rank(b, true)
	if x != y && !(x|1 == 3 && y|1 == 3) { // false and true are one type
		return false
	}
	order := compareScalars(a, true, b, true)
	switch c.Op {
	case api.OpLess:
		return order < 0
	case api.OpLessEqual:
		return order <= 0
	case api.OpGreater:
		return order > 0
	case api.OpGreaterEqual:
		return order >= 0
	}
	return order == 0
}

// find answers the ids of a query in the order of an index, or of ids.
func (t *twin) find(where []api.Condition, index string, descending bool) []string {
	var ids []string
	for id, d := range t.docs {
		ok := d.value != nil
		for _, c := range where {
			ok = ok && satisfies(d.value, c)
		}
		if ok {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y string) int {
		for _, ix := range t.indexes {
			if ix.Name != index {
				continue
			}
			for _, p := range ix.Paths {
				a, aok := scalarAt(t.docs[x].value, p)
				b, bok := scalarAt(t.docs[y].value, p)
				if c := compareScalars(a, aok, b, bok); c != 0 {
					return c
				}
			}
		}
		return strings.Compare(x, y)
	})
	if descending {
		slices.Reverse(ids)
	}
	return ids
}

// sweep forgets tombstones whose retention is over.
func (t *twin) sweep(now int64) {
	for id, d := range t.docs {
		if d.value == nil && d.at+t.retain <= now {
			delete(t.docs, id)
		}
	}
}
