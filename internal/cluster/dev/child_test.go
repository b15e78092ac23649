package dev_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/keyload/keyload/internal/cli"
	"github.com/keyload/keyload/internal/cluster/dev"
	"github.com/keyload/keyload/internal/node"
)

// asProgram makes the test binary the program keyload.
const asProgram = "KEYLOAD_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		os.Exit(cli.Run(ctx, os.Args[1:], cli.Standard()))
	}
	if err := os.Setenv(asProgram, "yes"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// limit is how long a test waits for what must happen.
const limit = 60 * time.Second

// screen is written by processes and read by the test.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func until(t *testing.T, what string, out *screen, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within the time: %s\n%s", what, out)
		}
	}
}

// served says whether a server answers there.
func served(url string) bool {
	c := http.Client{Timeout: 5 * time.Second}
	defer c.CloseIdleConnections()
	resp, err := c.Get(url + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// alive says whether a process is there.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// kept is a node that runs until the test ends it.
func kept(t *testing.T, out *screen, args ...string) (c *dev.Child, stop func() error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c = dev.NewChild(2, out, self, args...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Keep(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() }) // tests that care have asked already
	select {
	case <-c.Ready():
	case err := <-ended:
		ended <- err
	case <-time.After(limit):
		t.Fatalf("the node is not ready\n%s", out)
	}
	return c, stop
}

func TestANodeThatIsKilledRunsAgainAndStopsWhenItIsAsked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := node.Init(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	var out screen
	c, stop := kept(t, &out, "serve", "--dir", dir, "--listen", "127.0.0.1:0", "--json", "--with-input")
	seen := map[int]bool{}
	for range 3 {
		url, pid := c.State()
		if seen[pid] || !served(url) {
			t.Fatalf("process %d at %s, before %v\n%s", pid, url, seen, &out)
		}
		seen[pid] = true
		p, err := os.FindProcess(pid)
		if err != nil || p.Kill() != nil {
			t.Fatal(err)
		}
		until(t, "it runs again", &out, func() bool { _, now := c.State(); return now != 0 && now != pid })
	}
	url, pid := c.State()
	if !served(url) {
		t.Errorf("nothing answers at %s", url)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if alive(t, pid) || served(url) {
		t.Errorf("process %d is still there", pid)
	}
	text := out.String()
	for _, want := range []string{"node 2 ended (signal: killed", "node 2 runs again as process", `node 2 | {"time"`, `"msg":"stopped"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not told:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "node 2 ") {
			t.Errorf("a line of nobody: %q", line)
		}
	}
}

func TestANodeThatNeverWasReadyIsGivenUpWithItsReason(t *testing.T) {
	var out screen
	_, stop := kept(t, &out, "serve", "--dir", filepath.Join(t.TempDir(), "nothing"), "--json", "--with-input")
	err := stop()
	if err == nil || !strings.Contains(err.Error(), "node 2 ended before it was ready") || !strings.Contains(err.Error(), "no_store") {
		t.Errorf("got %v\n%s", err, &out)
	}
}

func TestLinesOfAProcessStayWholeHoweverTheyCome(t *testing.T) {
	var out bytes.Buffer
	w, end := dev.Prefixed(&out, "n | ")
	long := strings.Repeat("x", dev.MaxLine)
	for _, part := range []string{"one\ntw", "", "o\n\n", "  \n", "thr", "ee\nfour"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if last := end(); last != "four" {
		t.Errorf("the last line is %q", last)
	}
	if want := "n | one\nn | two\nn | three\nn | four\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
	out.Reset()
	if _, err := w.Write([]byte(long)); err != nil || out.String() != "n | "+long+"\n" {
		t.Errorf("a line of the largest size waits, %d bytes", out.Len())
	}
	if end(); strings.Count(out.String(), "\n") != 1 {
		t.Error("it came twice")
	}
}
