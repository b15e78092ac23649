package mcpgw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// The tools by which every operation is reached.
const (
	searchTool   = "keyload_tools_search"
	describeTool = "keyload_tools_describe"
	invokeTool   = "keyload_tools_invoke"
)

const (
	searchLimit = 20 // tools of an answer, unless asked for otherwise
	searchMost  = 200
	freshIDs    = 5 // command ids that describe makes
)

func (s *Server) addGateway() {
	no, yes := false, true
	s.mcp.AddTool(&mcp.Tool{
		Name: searchTool, Title: "Find operations",
		Description: "Finds operations by words, the best first. Without a query it lists them all. Answers names and summaries; " +
			"read the schema of one with keyload_tools_describe before you call it.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
			`"query":{"type":"string","maxLength":256,"description":"words of what you want to do, for example: receive messages of a queue"},` +
			`"area":{"type":"string","maxLength":64,"description":"only operations of this area, for example queues"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":200,"default":20,"description":"most operations to answer"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["tools","more"],"properties":{` +
			`"tools":{"type":"array","items":{"type":"object","required":["name","operation","summary","writes","destructive"],"properties":{` +
			`"name":{"type":"string"},"operation":{"type":"string"},"summary":{"type":"string"},` +
			`"writes":{"type":"boolean"},"destructive":{"type":"boolean"}}}},` +
			`"more":{"type":"integer","description":"operations that were found and left out"}}}`),
		Annotations: &mcp.ToolAnnotations{Title: "Find operations", ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no},
	}, s.search)
	s.mcp.AddTool(&mcp.Tool{
		Name: describeTool, Title: "Describe an operation",
		Description: "Tells what an operation does, with the exact schemas of its arguments and its answer, " +
			"and makes command ids for those that write.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["tool"],"properties":{` +
			`"tool":{"type":"string","maxLength":256,"description":"name of the operation, as the search answers it"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["name","operation","description","inputSchema","outputSchema","annotations"],"properties":{` +
			`"name":{"type":"string"},"operation":{"type":"string"},"description":{"type":"string"},` +
			`"inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"type":"object"},` +
			`"freshCommandIds":{"type":"array","items":{"type":"string"},"description":"ids for new writes: use each for one intent, and again only to repeat it"}}}`),
		Annotations: &mcp.ToolAnnotations{Title: "Describe an operation", ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no},
	}, s.describe)
	s.mcp.AddTool(&mcp.Tool{
		Name: invokeTool, Title: "Call an operation",
		Description: "Calls an operation with arguments as its input schema says. The answer is that of the operation, or an error that says " +
			"whether anything happened and how to go on. If an answer is lost, repeat the call unchanged.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["tool"],"properties":{` +
			`"tool":{"type":"string","maxLength":256,"description":"name of the operation, as the search answers it"},` +
			`"arguments":{"type":"object","description":"as the operation's input schema says"}}}`),
		Annotations: &mcp.ToolAnnotations{Title: "Call an operation", DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
	}, s.invokeNamed)
}

// addEvery adds each operation as a tool, and the names that others call already.
func (s *Server) addEvery() {
	for _, t := range s.catalog.all {
		s.mcp.AddTool(t.about, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.invoke(ctx, headerOf(r), t, r.Params.Arguments), nil
		})
	}
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if call, ok := r.(*mcp.CallToolRequest); ok && aliases[call.Params.Name] != "" {
				call.Params.Name = aliases[call.Params.Name]
			}
			return next(ctx, method, r)
		}
	})
}

func headerOf(r *mcp.CallToolRequest) http.Header {
	if r.Extra == nil {
		return nil
	}
	return r.Extra.Header
}

// found is one operation of an answer of search.
type found struct {
	Name        string `json:"name"`
	Operation   string `json:"operation"`
	Summary     string `json:"summary"`
	Writes      bool   `json:"writes"`
	Destructive bool   `json:"destructive"`
}

func (s *Server) search(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args := struct {
		Query string `json:"query"`
		Area  string `json:"area"`
		Limit int    `json:"limit"`
	}{Limit: searchLimit}
	if f := read(r.Params.Arguments, &args); f != nil {
		return refuse(f), nil
	}
	if args.Limit < 1 || args.Limit > searchMost {
		return refuse(fault.Invalid("/limit", "must be 1 to %d", searchMost)), nil
	}
	tools := s.catalog.search(args.Query, args.Area)
	more := max(0, len(tools)-args.Limit)
	out := []found{}
	for _, t := range tools[:len(tools)-more] {
		out = append(out, found{t.op.Tool(), t.op.Name, t.op.Summary, t.op.Writes(), t.op.Destructive})
	}
	return answer(map[string]any{"tools": out, "more": more}), nil
}

func (s *Server) describe(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		Tool string `json:"tool"`
	}
	if f := read(r.Params.Arguments, &args); f != nil {
		return refuse(f), nil
	}
	t, f := s.named(args.Tool)
	if f != nil {
		return refuse(f), nil
	}
	out := map[string]any{
		"name": t.op.Tool(), "operation": t.op.Name, "description": t.about.Description, "inputSchema": t.about.InputSchema,
		"outputSchema": t.about.OutputSchema, "annotations": t.about.Annotations,
	}
	if t.op.Writes() {
		var ids []string
		for range freshIDs {
			ids = append(ids, api.NewCommandID())
		}
		out["freshCommandIds"] = ids
	}
	return answer(out), nil
}

func (s *Server) invokeNamed(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if f := read(r.Params.Arguments, &args); f != nil {
		return refuse(f), nil
	}
	t, f := s.named(args.Tool)
	if f != nil {
		return refuse(f), nil
	}
	return s.invoke(ctx, headerOf(r), t, args.Arguments), nil
}

// named finds an operation by the name of its tool, its own, or an alias.
func (s *Server) named(name string) (*tool, *fault.Error) {
	if t := s.catalog.byName[name]; t != nil {
		return t, nil
	}
	detail := "there is no operation of this name; find one with " + searchTool + ". Nothing happened"
	if like := s.catalog.like(name); len(like) > 0 {
		detail = "there is no operation of this name; perhaps " + strings.Join(like, ", ") + ". Nothing happened"
	}
	return nil, fault.New(fault.NotFound, "unknown_tool", "%s", detail)
}

// read takes the arguments of one of the three tools.
func read(arguments json.RawMessage, into any) *fault.Error {
	if len(bytes.TrimSpace(arguments)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one value")
		}
	}
	if err != nil {
		return fault.New(fault.Validation, "malformed", "the arguments are not what the input schema says: %v. Nothing happened", err)
	}
	return nil
}

// answer is the result of one of the three tools.
func answer(v any) *mcp.CallToolResult {
	b, err := json.Marshal(v)
	if err != nil {
		return refuse(fault.New(fault.RecoveryRequired, "unencodable", "the answer cannot be written"))
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(b), Content: []mcp.Content{&mcp.TextContent{Text: string(b)}}}
}
