package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/jsontree"
	"github.com/keyload/keyload/internal/limits"
)

func check(t *testing.T, schema, doc string) ([]fault.Violation, error) {
	t.Helper()
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatalf("compile %s: %v", schema, err)
	}
	n, err := jsontree.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return s.Check(n, len(doc))
}

func TestDocumentsAreHeldToTheirSchema(t *testing.T) {
	for _, c := range []struct{ schema, doc, want string }{
		{`{}`, `{"a":1}`, ``},
		{`{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0}}}`, `{"name":"x","age":3}`, ``},
		{`{"required":["name","id"]}`, `{}`, `: must have "name", "id"`},
		{`{"properties":{"age":{"type":["integer","null"]}}}`, `{"age":"x"}`, `/age: must be of type null or integer`},
		{`{"properties":{"age":{"type":"integer"}}}`, `{"age":1.0}`, ``},
		{`{"properties":{"age":{"minimum":18}}}`, `{"age":17}`, `/age: does not satisfy minimum of the schema at #/properties/age`},
		{`{"properties":{"n":{"maximum":9007199254740992}}}`, `{"n":9007199254740993}`, `/n: does not satisfy maximum of the schema at #/properties/n`},
		{`{"properties":{"n":{"const":9007199254740993}}}`, `{"n":9007199254740992}`, `/n: does not satisfy const of the schema at #/properties/n`},
		{`{"properties":{"n":{"const":9007199254740993}}}`, `{"n":9007199254740993.0}`, ``},
		{`{"additionalProperties":false,"properties":{"a":true}}`, `{"a":1,"secret":2}`, `: has a field that the schema does not allow`},
		{`{"additionalProperties":{"type":"string"}}`, `{"secret":2}`, `/*: must be of type string`},
		{`{"properties":{"a":{"items":{"type":"string"}}}}`, `{"a":["x",1]}`, `/a/1: must be of type string`},
		{`{"properties":{"a":{"pattern":"^[a-z]+$"}}}`, `{"a":"A"}`, `/a: does not satisfy pattern of the schema at #/properties/a`},
		{`{"$defs":{"p":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/p"}}}`, `{"a":1}`, `/a: must be of type string`},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, `: does not satisfy anyOf of the schema at #`},
		{`{"not":{"required":["a"]}}`, `{"a":1}`, `: does not satisfy not of the schema at #`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `/a: is not allowed by the schema at #/properties/a`},
		{`{"propertyNames":{"maxLength":2}}`, `{"long":1}`, `: does not satisfy propertyNames of the schema at #/propertyNames`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"at":{"format":"date-time"}}}`, `{"at":"x"}`, `/at: does not satisfy format of the schema at #/properties/at`},
		{`{"properties":{"b":{"type":"string"},"a":{"type":"string"},"c":{"type":"string"}}}`, `{"c":1,"a":1,"b":1}`,
			`/a: must be of type string|/b: must be of type string|/c: must be of type string`},
	} {
		found, err := check(t, c.schema, c.doc)
		var got []string
		for _, v := range found {
			got = append(got, v.Path+": "+v.Message)
		}
		if err != nil || strings.Join(got, "|") != c.want {
			t.Errorf("%s under %s: %q, %v; want %q", c.doc, c.schema, got, err, c.want)
		}
	}
}

func TestViolationsAreEqualWhateverTheOrderOfMaps(t *testing.T) {
	var doc, schema strings.Builder
	for i := range 60 {
		fmt.Fprintf(&doc, `,"f%02d":{"x":%d,"y":[1]}`, i, i)
		fmt.Fprintf(&schema, `,"f%02d":{"properties":{"x":{"type":"string"}},"propertyNames":{"pattern":"^x$"}}`, i)
	}
	d, s := "{"+doc.String()[1:]+"}", `{"properties":{`+schema.String()[1:]+`}}`
	first, err := check(t, s, d)
	if err != nil || len(first) != limits.Violations {
		t.Fatalf("%d violations, %v; want %d", len(first), err, limits.Violations)
	}
	for range 30 {
		again, _ := check(t, s, d)
		if fmt.Sprint(again) != fmt.Sprint(first) {
			t.Fatalf("%v\nthen\n%v", first, again)
		}
	}
}

func TestUnusableSchemasAreRefusedWithACause(t *testing.T) {
	for _, c := range []struct{ schema, reason, says string }{
		{`{"$ref":"https://example.com/x.json"}`, "invalid_schema", "https://example.com/x.json"},
		{`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "invalid_schema", "file:///etc/passwd"},
		{`{"$ref":"other.json"}`, "invalid_schema", "other.json"},
		{`{"$schema":"https://example.com/meta"}`, "invalid_schema", "https://example.com/meta"},
		{`{"$ref":"#/nowhere"}`, "invalid_schema", "leads nowhere"},
		{`{"type":"number of things"}`, "invalid_schema", "does not allow"},
		{`{"minimum":"x"}`, "invalid_schema", "does not allow"},
		{`{"pattern":"(?=x)"}`, "invalid_schema", "(?=x)"},
		{`{"pattern":"(x{30}){30}y{900}z{900}"}`, "invalid_schema", "steps"},
		{`{"$ref":"#"}`, "invalid_schema", "refers to itself"},
		{`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`, "invalid_schema", "refers to itself"},
		{`{"$dynamicRef":"#x","$defs":{"x":{"$dynamicAnchor":"x"}}}`, "invalid_schema", "$dynamicRef"},
		{`{"maximum":1e9999}`, "invalid_schema", "exponent"},
		{`{"maximum":` + strings.Repeat("9", 1025) + `}`, "invalid_schema", "characters"},
		{`{"enum":[` + strings.Repeat("1,", 4096) + `1]}`, "invalid_schema", "4096"},
		{doubling(16), "schema_too_costly", "alternatives"},
		{`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, "schema_too_costly", "alternatives"},
		{`{"items":{"items":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, "schema_too_costly", "alternatives"},
	} {
		s, err := Compile([]byte(c.schema))
		if !errors.Is(err, fault.New(fault.Validation, c.reason, "")) || !strings.Contains(err.Error(), c.says) || s != nil {
			t.Errorf("%.80s: %v; want %s and %q", c.schema, err, c.reason, c.says)
		}
	}
}

// doubling is a schema whose n levels of definitions each ask for the next twice.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"object"}}}`, n)
	return b.String()
}

func TestRecursiveSchemasOfBoundedCostAreAccepted(t *testing.T) {
	const tree = `{"properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}`
	if found, err := check(t, tree, `{"name":"a","children":[{"name":"b"},{"children":[]}]}`); err != nil || len(found) != 1 || found[0].Path != "/children/1" {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := check(t, doubling(8), `{}`); err != nil || found != nil {
		t.Errorf("a schema of 2^8 alternatives: %v, %v", found, err)
	}
}

func TestAnIntermediateNameOfASchemaIsNotAFile(t *testing.T) {
	// $id alone must not make the library look for anything.
	if found, err := check(t, `{"$id":"https://example.com/person","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string"}}}`, `{"a":"x"}`); err != nil || found != nil {
		t.Errorf("%v, %v", found, err)
	}
}

func TestTheWorkOfOneCheckIsBounded(t *testing.T) {
	// Each element meets the schema of items: its own rule and 99 alternatives.
	schema := `{"properties":{"a":{"items":{"allOf":[` + strings.Repeat(`{"type":"number"},`, 98) + `{"type":"number"}]}}}}`
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	w := s.cost[2].rules
	// A document has the root, the array and its elements.
	most := int(maxWork/w) - 2
	for n, refused := range map[int]bool{most - 1: false, most: false, most + 1: true} {
		doc := `{"a":[` + strings.Repeat("1,", n-1) + `1]}`
		tree, err := jsontree.Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Check(tree, len(doc))
		if got := errors.Is(err, fault.New(fault.Validation, "schema_too_costly", "")); got != refused {
			t.Errorf("%d elements: %v, want a refusal: %v", n, err, refused)
		}
	}
}

func TestNumbersOfCheckedDocumentsAreBounded(t *testing.T) {
	for number, refused := range map[string]bool{
		"1e1024": false, "1e1025": true, "1e-1024": false, "1e-1025": true, "1e99999999999999999999": true,
		strings.Repeat("1", 1024): false, strings.Repeat("1", 1025): true,
	} {
		_, err := check(t, `{"properties":{"a":{"minimum":0}}}`, `{"a":`+number+`}`)
		if got := errors.Is(err, fault.New(fault.Validation, "number_too_large", "")); got != refused {
			t.Errorf("%.20s…: %v, want a refusal: %v", number, err, refused)
		}
	}
}

func TestACacheAnswersTheSameSchemaForTheSameText(t *testing.T) {
	var c Cache
	first, err := c.Get([]byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := c.Get([]byte(`{"type":"object"}`)); again != first {
		t.Error("the schema is compiled twice")
	}
	for i := range maxCached {
		if _, err := c.Get(fmt.Appendf(nil, `{"minProperties":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.byText) > maxCached {
		t.Errorf("%d schemas are kept, more than %d", len(c.byText), maxCached)
	}
	if again, err := c.Get([]byte(`{"type":"object"}`)); err != nil || again == nil {
		t.Errorf("after the cache was emptied: %v", err)
	}
	if _, err := c.Get([]byte(`{"type":1}`)); err == nil {
		t.Error("an invalid schema is cached")
	}
}
