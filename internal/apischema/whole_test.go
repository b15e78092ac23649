package apischema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/keyload/keyload/api"
)

func TestTheSchemaOfEveryOperationStandsAlone(t *testing.T) {
	for _, o := range api.Operations() {
		for _, s := range []*Schema{Whole(o.Request, true), Whole(o.Response, false)} {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if s.Type != "object" {
				t.Errorf("%s: the root is %q, not an object", o.Name, s.Type)
			}
			document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			c := jsonschema.NewCompiler()
			if err := c.AddResource("mem:///schema.json", document); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Compile("mem:///schema.json"); err != nil {
				t.Errorf("%s: %v", o.Name, err)
			}
		}
	}
}
