package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/keyload/keyload/api"
)

// agentOf starts "keyload mcp" with arguments and connects an agent to it; ended gets
// what the program exits with.
func agentOf(t *testing.T, args ...string) (agent *mcp.ClientSession, ended <-chan int) {
	t.Helper()
	in, toProgram := io.Pipe()
	fromProgram, out := io.Pipe()
	var said bytes.Buffer
	code := make(chan int, 1)
	go func() {
		c := Run(t.Context(), append([]string{"mcp"}, args...), Streams{In: in, Out: out, Err: &said})
		_ = out.Close() // so that an agent whose program failed does not wait for it
		code <- c
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	agent, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromProgram, Writer: toProgram}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	return agent, code
}

func TestAnAgentWorksOnADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var out, said bytes.Buffer
	if code := Run(t.Context(), []string{"init", "--dir", dir}, Streams{Out: &out, Err: &said}); code != 0 {
		t.Fatal(said.String())
	}
	for _, direct := range []bool{false, true} {
		args := []string{"--dir", dir}
		if direct {
			args = append(args, "--mcp-direct")
		}
		agent, ended := agentOf(t, args...)
		listed, err := agent.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 3, true: 3 + len(api.Operations())}[direct]; len(listed.Tools) != want {
			t.Errorf("directly %v: %d tools, want %d", direct, len(listed.Tools), want)
		}
		id := api.NewCommandID()
		configure := `{"commandId":"` + id + `","name":"jobs","kind":"queue"}`
		r, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "keyload_tools_invoke", Arguments: map[string]any{
			"tool": "keyload_resources_configure", "arguments": json.RawMessage(configure),
		}})
		if err != nil || r.IsError {
			t.Errorf("directly %v: %v, %v", direct, r, err)
		}
		if err := agent.Close(); err != nil {
			t.Error(err)
		}
		if code := <-ended; code != 0 {
			t.Errorf("directly %v: it exits with %d", direct, code)
		}
	}
	// Whoever acts as a principal has its rights and no more.
	agent, ended := agentOf(t, "--dir", dir, "--as", "default/nobody")
	r, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "keyload_tools_invoke", Arguments: map[string]any{"tool": "keyload_resources_list"}})
	if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "PermissionDenied") {
		t.Errorf("%v, %v", r, err)
	}
	if err := agent.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}
