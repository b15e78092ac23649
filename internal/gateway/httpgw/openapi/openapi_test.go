package openapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// decoded is the document as a reader of JSON sees it.
func decoded(t *testing.T) map[string]any {
	t.Helper()
	b, err := Document(api.Operations(), "test")
	if err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// at follows names through objects; it fails where there is none.
func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for i, name := range path {
		o, ok := v.(map[string]any)
		if !ok || o[name] == nil {
			t.Fatalf("nothing at %v", path[:i+1])
		}
		v = o[name]
	}
	return v
}

func TestTheDocumentHasEveryOperationWithItsSchemasAndErrors(t *testing.T) {
	d := decoded(t)
	if v := at(t, d, "openapi").(string); !strings.HasPrefix(v, "3.1.") {
		t.Errorf("version %s", v)
	}
	for _, o := range api.Operations() {
		post := at(t, d, "paths", o.Path(), "post")
		if at(t, post, "operationId") != o.Name || at(t, post, "summary") != o.Summary {
			t.Errorf("%s is not at %s", o.Name, o.Path())
		}
		for _, mediaType := range []string{"application/json", "application/cbor"} {
			if got := at(t, post, "requestBody", "content", mediaType, "schema", "$ref"); got != "#/components/schemas/"+o.Request.Name() {
				t.Errorf("%s: request %v", o.Name, got)
			}
			if got := at(t, post, "responses", "200", "content", mediaType, "schema", "$ref"); got != "#/components/schemas/"+o.Response.Name() {
				t.Errorf("%s: response %v", o.Name, got)
			}
		}
		for _, c := range fault.Codes() {
			status := strconv.Itoa(c.Status())
			ref := at(t, post, "responses", status, "$ref").(string)
			text := at(t, d, "components", "responses", strings.TrimPrefix(ref, "#/components/responses/"), "description").(string)
			if !strings.Contains(text, string(c)+": ") {
				t.Errorf("%s: status %s does not speak of %s", o.Name, status, c)
			}
		}
	}
	codes := at(t, d, "components", "schemas", "Problem", "properties", "code", "enum").([]any)
	if len(codes) != len(fault.Codes()) {
		t.Errorf("%d codes", len(codes))
	}
}

func TestEveryReferenceLeadsSomewhere(t *testing.T) {
	d := decoded(t)
	n := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				at(t, d, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
				n++
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(d)
	if n < 500 {
		t.Errorf("only %d references", n)
	}
}

func TestEverySchemaHasTheFieldsOfItsTypeAndNoOther(t *testing.T) {
	schemas := at(t, decoded(t), "components", "schemas").(map[string]any)
	seen := map[reflect.Type]bool{}
	var visit func(typ reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		if typ == reflect.TypeFor[api.Mutation]() {
			for _, k := range api.MutationKinds() {
				kind := at(t, schemas, "Mutation."+k.Name)
				if at(t, kind, "properties", "kind", "const") != k.Name {
					t.Errorf("%s is not named", k.Name)
				}
				fields(t, k.Type, kind, "kind")
				for i := range k.Type.NumField() {
					visit(k.Type.Field(i).Type)
				}
			}
			return
		}
		if schemas[typ.Name()] == nil {
			t.Errorf("no schema %s", typ.Name())
			return
		}
		fields(t, typ, schemas[typ.Name()])
		for i := range typ.NumField() {
			visit(typ.Field(i).Type)
		}
	}
	for _, o := range api.Operations() {
		visit(o.Request)
		visit(o.Response)
	}
}

// fields compares one struct with its schema.
func fields(t *testing.T, typ reflect.Type, schema any, more ...string) {
	t.Helper()
	properties, _ := schema.(map[string]any)["properties"].(map[string]any)
	required, _ := schema.(map[string]any)["required"].([]any)
	want := len(more)
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		want++
		p, ok := properties[name].(map[string]any)
		if !ok {
			t.Errorf("%s.%s is missing", typ.Name(), name)
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
		if n, _ := p["x-cbor-key"].(float64); strconv.Itoa(int(n)) != key {
			t.Errorf("%s.%s: CBOR key %v, want %s", typ.Name(), name, p["x-cbor-key"], key)
		}
		if got := slices.Contains(required, any(name)); got != !strings.Contains(options, "omit") {
			t.Errorf("%s.%s: required %v", typ.Name(), name, got)
		}
		if d := f.Tag.Get("doc"); d != "" && p["description"] != d {
			t.Errorf("%s.%s: description %v", typ.Name(), name, p["description"])
		}
	}
	if len(properties) != want {
		t.Errorf("%s has %d properties, want %d", typ.Name(), len(properties), want)
	}
}

func TestBoundsAreExactAndRequestsAreClosed(t *testing.T) {
	b, err := Document(api.Operations(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"maximum": 9223372036854775807`) {
		t.Error("a bound of 63 bits was rounded")
	}
	d := decoded(t)
	for name, closed := range map[string]bool{"QueuesReceiveRequest": true, "PartitionRef": true, "QueuesReceiveResponse": false, "Delivery": false} {
		schema := at(t, d, "components", "schemas", name).(map[string]any)
		if got := schema["additionalProperties"] == false; got != closed {
			t.Errorf("%s refuses unknown fields: %v, want %v", name, got, closed)
		}
	}
	max := at(t, d, "components", "schemas", "QueuesReceiveRequest", "properties", "maxMessages").(map[string]any)
	if max["minimum"] != 1.0 || max["maximum"] != 256.0 || max["default"] != 1.0 {
		t.Errorf("%v", max)
	}
}

func TestEqualDescriptorsGiveEqualDocuments(t *testing.T) {
	first, err := Document(api.Operations(), "test")
	if err != nil {
		t.Fatal(err)
	}
	page, err := Page(api.Operations(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, _ := Document(api.Operations(), "test")
		pageAgain, _ := Page(api.Operations(), "test")
		if string(again) != string(first) || string(pageAgain) != string(page) {
			t.Fatal("the order of something is not fixed")
		}
	}
}

func TestTheDocumentHasTheDownloadOfABackup(t *testing.T) {
	post := at(t, decoded(t), "paths", api.BackupPath, "post")
	if at(t, post, "responses", "200", "content", "application/zstd") == nil || !strings.Contains(at(t, post, "description").(string), "Administrators only") {
		t.Errorf("it says %v", post)
	}
}
