package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal makes one: what is written to the device is read from the other end.
func terminal(t *testing.T) (device, other *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no terminals: %v", err)
	}
	t.Cleanup(func() { _ = other.Close() })
	if err := unix.IoctlSetPointerInt(int(other.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("a terminal cannot be unlocked: %v", err)
	}
	n, err := unix.IoctlGetInt(int(other.Fd()), unix.TIOCGPTN)
	if err == nil {
		device, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("there is no terminal: %v", err)
	}
	return device, other
}

// Progress is for people: it goes to the standard error, and only a terminal there
// says that somebody sees it.
func TestProgressIsShownWhereTheStandardErrorIsATerminal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	filled(t, dir)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	run := func(out io.Writer, err io.Writer) {
		t.Helper()
		cmd := exec.Command("keyload", "check", dir)
		cmd.Stdout, cmd.Stderr = out, err
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
	}
	for _, out := range []io.Writer{null, &bytes.Buffer{}} {
		device, other := terminal(t)
		shown := make(chan string)
		go func() {
			b, _ := io.ReadAll(other) // ends with an error when the device is closed
			shown <- string(b)
		}()
		run(out, device)
		if err := device.Close(); err != nil {
			t.Fatal(err)
		}
		if got := <-shown; !strings.Contains(got, "checked   100% of ") {
			t.Errorf("with a terminal for errors and %T for the rest it shows %q", out, got)
		}
	}
	var file bytes.Buffer
	run(null, &file)
	device, other := terminal(t)
	go func() { _, _ = io.Copy(io.Discard, other) }()
	run(device, &file)
	if err := device.Close(); err != nil || file.Len() > 0 {
		t.Errorf("where nobody reads it, it writes %q, %v", &file, err)
	}
}
