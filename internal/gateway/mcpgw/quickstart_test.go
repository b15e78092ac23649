package mcpgw_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
)

// The calls of the quick start work as they stand there.
func TestTheCallsOfTheQuickStartWork(t *testing.T) {
	b := newBed(t, false)
	for name, kind := range map[string]api.ResourceKind{"orders": api.KindCollection, "emails": api.KindQueue} {
		_, err := b.db.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Name: name, Kind: kind})
		ok(t, err)
	}
	text, err := os.ReadFile("quickstart.md")
	ok(t, err)
	_, text2, found := strings.Cut(string(text), "## Calls to copy")
	if !found {
		t.Fatal("there are no calls to copy")
	}
	calls := regexp.MustCompile(`(?ms)^    (keyload_\w+) (\{.*?\})$(?:\n\n|\n    keyload|\z|\n\z)`)
	token, made := "", 0
	for rest := text2; ; made++ {
		at := calls.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		name, arguments := rest[at[2]:at[3]], rest[at[4]:at[5]]
		rest = rest[at[5]:]
		for strings.Contains(arguments, "<new id>") {
			arguments = strings.Replace(arguments, "<new id>", api.NewCommandID(), 1)
		}
		got := b.call(b.agent, name, json.RawMessage(strings.ReplaceAll(arguments, "<token of the delivery>", token)))
		if got.fails {
			t.Errorf("%s %s: %s", name, arguments, got.json)
		}
		var r struct{ Deliveries []api.Delivery }
		ok(t, json.Unmarshal([]byte(got.json), &r))
		if len(r.Deliveries) > 0 {
			token = r.Deliveries[0].Token
		}
	}
	if made != 4 || token == "" {
		t.Errorf("%d calls were made, with the token %q", made, token)
	}
}
