package wire

import (
	"reflect"
	"strings"

	"github.com/keyload/keyload/api"
)

// maxNameInPath is how much of a caller's own name an error repeats.
const maxNameInPath = 64

// visible cuts a JSON pointer at the first payload: names inside a payload
// belong to the payload and stay out of errors. One name that the type does not
// know is kept, shortened: it is the unknown field itself.
func visible(t reflect.Type, pointer string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if pointer == "" || t == reflect.TypeFor[api.JSON]() {
			break
		}
		if len(part) > maxNameInPath {
			part = strings.ToValidUTF8(part[:maxNameInPath], "") + "…"
		}
		out.WriteString("/" + part)
		next := child(t, part)
		if next == nil {
			break
		}
		t = next
	}
	return out.String()
}

// child is the type under one token of a pointer, nil when there is none.
func child(t reflect.Type, token string) reflect.Type {
	switch {
	case t == reflect.TypeFor[api.Mutation]():
		if token == "kind" {
			return reflect.TypeFor[string]()
		}
		for _, k := range api.MutationKinds() {
			if next := child(k.Type, token); next != nil {
				return next
			}
		}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		return t.Elem()
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == token {
				return f.Type
			}
		}
	}
	return nil
}
