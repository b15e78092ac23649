package cli_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/internal/node"
)

func TestTailWritesEventsAsTheyComeUntilItIsInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	made, err := node.Init(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	url := serving(t, dir)
	c := client.New(url, made.APIKey)
	defer c.Close()
	if _, err := c.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Name: "news", Kind: api.KindTopic}); err != nil {
		t.Fatal(err)
	}
	tail := exec.Command("keyload", "tail", "news", "--url", url)
	tail.Env = append(os.Environ(), "KEYLOAD_API_KEY="+made.APIKey)
	out, err := tail.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaint strings.Builder
	tail.Stderr = &complaint
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, kind := range []string{"First", "Second"} {
		if _, err := c.Commit(t.Context(), api.PartitionRef{}, keyload.Publish("news", keyload.Event(kind, 1))); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), "  "+kind+"  ") {
			t.Fatalf("tail wrote %q, %v\n%s", lines.Text(), lines.Err(), complaint.String())
		}
	}
	if err := tail.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = tail.Wait()
	if tail.ProcessState.ExitCode() != 130 || complaint.String() != "keyload: interrupted\n" {
		t.Errorf("tail ended with %v and wrote %q", err, complaint.String())
	}
}

// serving serves the store until the test ends.
func serving(t *testing.T, dir string) (url string) {
	t.Helper()
	serve := exec.Command("keyload", "serve", "--dir", dir, "--listen", "127.0.0.1:0")
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Signal(os.Interrupt)
		if err := serve.Wait(); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), " at ")
	if !ok {
		t.Fatalf("serve wrote %q, %v", line, err)
	}
	return url
}
