package mcpgw_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/keyload/keyload/internal/sim/trial"
)

// A client that nobody here wrote works with the server: the TypeScript SDK, fetched from
// its registry, over streamable HTTP.
func TestAClientOfOthersWorksWithTheServer(t *testing.T) {
	if !trial.Long() {
		t.Skip("fetches a client from its registry: KEYLOAD_LONG=1")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("needs Node.js and npm")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "client.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata", "client", name))
		ok(t, err)
		ok(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	run := func(name string, args ...string) []byte {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir, c.Stderr = dir, os.Stderr
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return out
	}
	run("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
	b := newBed(t, false)
	type outcome struct {
		Error bool
		Value map[string]any
	}
	var saw struct {
		Tools, Found       []string
		Schema             string
		First, Again       outcome
		Deliveries         []map[string]any
		Done               bool
		Refused            outcome
		Quickstart, Prompt int
	}
	ok(t, json.Unmarshal(run("node", "client.mjs", b.url+"/mcp", b.key), &saw))
	if !slices.Equal(saw.Tools, []string{"keyload_tools_describe", "keyload_tools_invoke", "keyload_tools_search"}) {
		t.Errorf("it lists %v", saw.Tools)
	}
	if len(saw.Found) == 0 || saw.Found[0] != "keyload_commands_commit" || saw.Schema != "object" {
		t.Errorf("it finds %v with a schema of %q", saw.Found, saw.Schema)
	}
	if saw.First.Error || !reflect.DeepEqual(saw.First, saw.Again) {
		t.Errorf("it commits %v, and again %v", saw.First, saw.Again)
	}
	if len(saw.Deliveries) != 1 || saw.Deliveries[0]["order"] != "o-1" || saw.Done {
		t.Errorf("it receives %v; finishing fails: %v", saw.Deliveries, saw.Done)
	}
	if !saw.Refused.Error || saw.Refused.Value["code"] != "NotFound" {
		t.Errorf("it is refused with %v", saw.Refused)
	}
	if saw.Quickstart == 0 || saw.Prompt == 0 {
		t.Errorf("the quick start has %d characters and the prompt %d", saw.Quickstart, saw.Prompt)
	}
	trial.Report(t, "agents", "the TypeScript client lists %d tools, commits twice with one receipt, receives %d message", len(saw.Tools), len(saw.Deliveries))
}
