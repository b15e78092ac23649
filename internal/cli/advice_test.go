package cli

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// reasonsAdvised are the reasons that the file with the advice knows.
func reasonsAdvised(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "advice.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok {
			for _, e := range c.List {
				if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					reason, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, reason)
				}
			}
		}
		return true
	})
	if len(out) < 30 {
		t.Fatalf("%d reasons were found: the test tests nothing", len(out))
	}
	return out
}

// hinted is one command that an advice suggests, up to where the sentence goes on.
var hinted = regexp.MustCompile(`keyload (` + strings.Join(firstWords(), "|") + `)\b[^),;\n]*`)

// apart says that a command finds its store by other means than these flags, or
// works on none.
func apart(command string) bool {
	for _, own := range []string{"keyload serve ", "keyload init ", "keyload restore FROM ", "keyload check ", "keyload backup list ", "keyload backup inspect ", "keyload backup verify "} {
		if strings.HasPrefix(command, own) {
			return true
		}
	}
	return strings.Contains(command, " --help")
}

// A command that is copied works on the store that the failed one was about, and
// as the same principal: whatever the reason, and wherever that store is.
func TestEveryCommandThatIsAdvisedWorksWhereTheFailedOneDid(t *testing.T) {
	t.Setenv(urlVariable, "http://other.example.org:7600")
	request := &api.SubscriptionsResumeRequest{Group: api.GroupRef{Source: api.SourceRef{Resource: "prices", Kind: api.SourceTopic}, Group: "audit"}}
	for _, c := range []struct {
		globals
		want string
	}{
		{globals{Dir: "my data"}, " --dir 'my data'"},
		{globals{Dir: "data", As: "default/clerk"}, " --dir data --as default/clerk"},
		{globals{URL: []string{"http://127.0.0.1:7611"}, APIKey: "klk_secret"}, " --url http://127.0.0.1:7611"},
	} {
		s := &session{globals: &c.globals, request: request}
		seen := 0
		for _, reason := range append(reasonsAdvised(t), "") {
			for _, code := range fault.Codes() {
				e := fault.New(code, reason, "d").With("holder", "audit").With("checkpoint", "1")
				for _, command := range hinted.FindAllString(advice(e, s.subject()), -1) {
					if apart(command) {
						continue
					}
					if seen++; !strings.Contains(command, c.want) {
						t.Errorf("%s (%s) advises %q", code, reason, command)
					}
				}
			}
		}
		if seen < 100 {
			t.Errorf("%d commands were advised: the test tests nothing", seen)
		}
		a := s.subject()
		for _, o := range api.Operations() {
			if got := a.runnable(o.Name, 1); !strings.HasSuffix(got, c.want) {
				t.Errorf("an answer that names %s suggests %q", o.Name, got)
			}
		}
		var out bytes.Buffer
		s.streams.Out = &out
		st := &api.AdminRestoreStatusResponse{Groups: []api.PausedGroup{{Group: request.Group, Generation: 3, FailureCode: "restored"}}}
		st.Dispatch.Paused = true
		if err := s.tellWaiting(st); err != nil {
			t.Fatal(err)
		}
		commands := hinted.FindAllString(out.String(), -1)
		for _, command := range commands {
			if !strings.Contains(command, c.want) {
				t.Errorf("restore status suggests %q", command)
			}
		}
		if len(commands) < 2 {
			t.Errorf("restore status suggests %q: the test tests nothing", commands)
		}
		if strings.Contains(out.String(), "klk_secret") {
			t.Error("a key was written out")
		}
	}
}

// What the environment says is found there by the next command too.
func TestAnAdvisedCommandLeavesOutWhatTheEnvironmentSays(t *testing.T) {
	t.Setenv(urlVariable, "http://127.0.0.1:7611")
	s := &session{globals: &globals{URL: []string{"http://127.0.0.1:7611"}}}
	if got := s.site().command("admin", "status"); got != "keyload admin status" {
		t.Errorf("it is %q", got)
	}
}
