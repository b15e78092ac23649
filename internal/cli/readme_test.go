package cli_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notRun says why a line of a document is left out of its test.
var notRun = map[string]string{
	"make demo":         "the demo has a test of its own",
	"make test":         "this test is a part of it",
	"make demo-cluster": "the demo has a test of its own",
	"make build":        "the program under test is built already",
}

// byHand is what a document tells its reader to do without a command of ours: a line of
// an sh block, and what the test does there.
var byHand = map[string]string{
	"# stop node 2, as your service manager does (SIGTERM)": "stop node-2",
	"# stop node 4, as your service manager does (SIGTERM)": "stop node-4",
	"# node 3 is lost, and its disk with it":                "lose node-3",
}

// A line of an sh block of a document.
type line struct {
	number int
	text   string
}

// shellLines are the lines of the ```sh blocks of a document.
func shellLines(document string) []line {
	var out []line
	inside := false
	for i, text := range strings.Split(document, "\n") {
		switch {
		case inside && strings.HasPrefix(text, "```"):
			inside = false
		case inside:
			out = append(out, line{i + 1, text})
		case text == "```sh":
			inside = true
		}
	}
	return out
}

// documents are those whose commands are run as they are printed.
var documents = []string{"README.md", "docs/backup.md"}

func TestEveryCommandOfTheDocumentsWorks(t *testing.T) {
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			if out, err := runShell(t, scriptOf(t, name)); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// scriptOf is every command of a document that is run.
func scriptOf(t *testing.T, name string) string {
	t.Helper()
	var script strings.Builder
	ran := 0
	for _, l := range shellLines(read(t, name)) {
		if reason := notRun[l.text]; reason != "" {
			t.Logf("%s:%d %q is not run: %s", name, l.number, l.text, reason)
			continue
		}
		text := l.text
		if done := byHand[text]; done != "" {
			text = done
		}
		ran++
		script.WriteString(strings.ReplaceAll(text, "bin/keyload", "keyload") + "\n")
	}
	if ran == 0 {
		t.Fatal("it has no command that is run")
	}
	return script.String()
}

// read reads a document.
func read(t *testing.T, name string) string {
	t.Helper()
	document, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

func TestEveryLineThatIsTreatedApartIsInADocument(t *testing.T) {
	there := map[string]bool{}
	for _, name := range append(documents, "docs/cluster.md") {
		for _, l := range shellLines(read(t, name)) {
			there[l.text] = true
		}
	}
	for _, apart := range []map[string]string{notRun, byHand} {
		for text := range apart {
			if !there[text] {
				t.Errorf("no document has a line %q any more", text)
			}
		}
	}
}

// prelude does what a document tells its reader to do by hand: it keeps the key
// that init shows, lets serve run beside the commands after it, and stops or loses
// the node of a directory. A command that fails, or that the server refuses, ends
// the script, and so does a server that ends badly.
const prelude = `set -eux
keyload() {
  case "$1" in
  init)
    "$KEYLOAD" "$@" > made
    cat made
    KEYLOAD_API_KEY=$(sed -n 's/^apiKey *//p' made)
    export KEYLOAD_API_KEY ;;
  serve)
    rm -f ready
    mkfifo ready
    "$KEYLOAD" "$@" > ready &
    servers="$servers $!"
    echo $! > "$3.pid" # of serve --dir DIR
    read -r url < ready
    echo "$url" ;;
  *)
    "$KEYLOAD" "$@" ;;
  esac
}
curl() { command curl --fail-with-body "$@"; echo; }
ended() { servers=$(for s in $servers; do [ "$s" = "$1" ] || echo "$s"; done); }
stop() {
  pid=$(cat "$1.pid")
  kill "$pid"
  wait "$pid"
  ended "$pid"
}
lose() {
  pid=$(cat "$1.pid")
  kill -9 "$pid"
  wait "$pid" || true
  rm -r "$1"
  ended "$pid"
}
servers=
trap 'for s in $servers; do kill $s; done; for s in $servers; do wait $s; done' EXIT
`

// runShell runs a script in an empty directory with the program keyload. Its
// server listens where no other process does.
func runShell(t *testing.T, script string) (string, error) {
	t.Helper()
	address := freeAddress(t)
	return runShellIn(t, t.TempDir(), strings.ReplaceAll(script, "127.0.0.1:7600", address),
		"KEYLOAD_LISTEN="+address, "KEYLOAD_URL=http://"+address)
}

// runShellIn runs a script in a directory, with nothing in its environment that
// keyload reads but what is given.
func runShellIn(t *testing.T, dir, script string, environment ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("sh", "-c", prelude+script)
	cmd.Dir = dir
	program, err := exec.LookPath("keyload") // TestMain puts it on the path
	if err != nil {
		t.Fatal(err)
	}
	own := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "KEYLOAD_") })
	cmd.Env = append(append(own, "KEYLOAD="+program), environment...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// freeAddress is an address nobody listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestOnlyLinesOfShellBlocksAreCommands(t *testing.T) {
	got := shellLines("a\n```sh\none\ntwo\n```\nb\n```go\nthree\n```\n```sh\nfour\n```")
	want := []line{{3, "one"}, {4, "two"}, {11, "four"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestACommandOfADocumentThatFailsFailsItsTest(t *testing.T) {
	for _, script := range []string{
		"false\ntrue", "keyload nonsense\ntrue", "keyload get a b --dir missing\ntrue",
		"keyload init --dir data\nkeyload serve --dir data\ncurl -s http://127.0.0.1:7600/v1/queues/status -d '{}'\ntrue",
	} {
		if out, err := runShell(t, script); err == nil {
			t.Errorf("%q succeeded\n%s", script, out)
		}
	}
}
