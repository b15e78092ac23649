package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keyload/keyload/fault"
)

// smallDisk names the variable that tells the test below that it runs again, in
// namespaces of its own, where it may mount a small disk on the directory named.
const smallDisk = "KEYLOAD_TEST_SMALL_DISK"

// A server that was killed on a full disk says so and ends when it is started
// again, as often as that happens; with room it goes on from there.
func TestAServerOnADiskThatIsStillFullSaysSoAndEnds(t *testing.T) {
	dir := os.Getenv(smallDisk)
	if dir == "" {
		inNamespaces(t)
		return
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("no disk can be mounted: %v", err)
	}
	store := filepath.Join(dir, "store")
	var made struct{ APIKey string }
	if err := json.Unmarshal(command(t, "init", "--dir", store, "--json"), &made); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KEYLOAD_API_KEY", made.APIKey)
	const messages = 30
	server := startServer(t, store)
	command(t, "create", "queue", "jobs")
	for i := range messages {
		command(t, "enqueue", "jobs", fmt.Sprintf("%q", fmt.Sprint(i, strings.Repeat("payload ", 10_000))))
	}
	if err := errors.Join(server.Process.Kill(), ignoreExit(server.Wait())); err != nil {
		t.Fatal(err)
	}

	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	for range 3 {
		out, code := serveAndFail(t, store)
		if code != fault.RecoveryRequired.ExitCode() {
			t.Errorf("it exits with %d", code)
		}
		for _, want := range []string{"no space left on device", "nothing stored was changed or lost", "make room"} {
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	server = startServer(t, store)
	var status struct{ Counts struct{ Ready int } }
	if err := json.Unmarshal(command(t, "queues", "status", "--queue", "jobs", "--json"), &status); err != nil {
		t.Fatal(err)
	}
	if status.Counts.Ready != messages {
		t.Errorf("%d of %d messages are there", status.Counts.Ready, messages)
	}
	if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// inNamespaces runs the test again where it may mount.
func inNamespaces(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	again.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := again.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Errorf("%v\n%s", err, out)
	case err != nil:
		t.Skipf("no namespaces can be made: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	}
}

// command runs a command that must succeed and answers what it wrote.
func command(t *testing.T, args ...string) []byte {
	t.Helper()
	var failed strings.Builder
	cmd := exec.Command("keyload", args...)
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("keyload %s: %v\n%s", args[0], err, &failed)
	}
	return out
}

// startServer starts a server and sets KEYLOAD_URL once it serves.
func startServer(t *testing.T, store string) *exec.Cmd {
	t.Helper()
	var log strings.Builder
	cmd := exec.Command("keyload", "serve", "--dir", store, "--listen", "127.0.0.1:0")
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // nothing to do when it ended
	line, err := bufio.NewReader(out).ReadString('\n')
	url := regexp.MustCompile(`https?://[^\s"]+`).FindString(line)
	if err != nil || url == "" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("serve wrote %q, %v\n%s", line, err, &log)
	}
	t.Setenv("KEYLOAD_URL", url)
	return cmd
}

// serveAndFail starts a server that must end by itself.
func serveAndFail(t *testing.T, store string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "keyload", "serve", "--dir", store, "--listen", "127.0.0.1:0")
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil || err == nil {
		t.Fatalf("it did not fail by itself: %v\n%s", err, b)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// fill writes a file until nothing more fits on its disk.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

func ignoreExit(err error) error {
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return nil
	}
	return err
}
