//go:build linux

package load

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/keyload/keyload/internal/sim/trial"
)

const (
	// openMore is how much longer opening a store of a million messages and the first
	// receive may take than of a thousand.
	openMore = 2 * time.Second
	// openBytes is how many bytes of files may be read until the first receive: those
	// of four memtables, and a little more.
	openBytes = 160 << 20
	// restBytes is what a server may take when it does nothing.
	restBytes = 256 << 20
)

// A server that was killed with a million messages is there again as soon as one
// with a thousand, and takes little memory: it reads what was not written out, not
// what there is.
func TestAStoreOfAMillionMessagesOpensAsSoonAsASmallOneAndRestsInLittleMemory(t *testing.T) {
	if !trial.Long() {
		t.Skip("it stores a million messages; KEYLOAD_LONG=1 runs it")
	}
	var opened [2]told
	var logs, tables int64 // bytes of the larger store
	for i, n := range []int{1_000, 1_000_000} {
		dir := filepath.Join(t.TempDir(), "store")
		filled := child(t, orders{Dir: dir, Fill: n}) // and killed
		logs, tables = sizes(t, dir)
		opened[i] = child(t, orders{Dir: dir, Key: filled.Key})
		t.Logf("%d messages: stored in %v, %d MiB in tables and %d in logs; opened in %v, first receive after %v and %d MiB read; %d MiB of memory right after that, %d at rest", n,
			filled.Took, tables>>20, logs>>20, opened[i].Opened, opened[i].Took, opened[i].Read>>20, opened[i].Busy>>20, opened[i].Rest>>20)
	}
	small, large := opened[0], opened[1]
	if more := large.Took - small.Took; more > openMore {
		t.Errorf("with a million messages the first receive comes %v later", more)
	}
	// The same on a machine of any speed: what is read is what was not written out yet,
	// which is bounded, and not the tables.
	if large.Read > openBytes {
		t.Errorf("with a million messages %d MiB are read until the first receive; the bound is %d", large.Read>>20, openBytes>>20)
	}
	if tables < openBytes {
		t.Errorf("the store has %d MiB of tables, and %d may be read: the test tests nothing", tables>>20, openBytes>>20)
	}
	if large.Rest > restBytes {
		t.Errorf("at rest the server takes %d MiB; the bound is %d", large.Rest>>20, restBytes>>20)
	}
	trial.Report(t, "recovery", "1,000 messages: open %v, first receive %v, %d MiB at rest; 1,000,000 messages: open %v, first receive %v, %d MiB at rest of at most %d",
		small.Opened.Round(time.Millisecond), small.Took.Round(time.Millisecond), small.Rest>>20,
		large.Opened.Round(time.Millisecond), large.Took.Round(time.Millisecond), large.Rest>>20, restBytes>>20)
}

// told is what a child tells before it is killed.
type told struct {
	Key        string        // of the administrator
	Opened     time.Duration // until the server accepted requests
	Took       time.Duration // until all was stored, or the first message received
	Read       uint64        // bytes of files, until then
	Busy, Rest uint64        // bytes of memory after that, and when nothing went on any more
	Failed     string
}

// sizes are the bytes of a store's logs and of its tables.
func sizes(t *testing.T, dir string) (logs, tables int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Ext(f.Name()) {
		case ".log":
			logs += info.Size()
		case ".sst", ".blob":
			tables += info.Size()
		}
	}
	return logs, tables
}

// child lets a process carry orders out, and kills it.
func child(t *testing.T, o orders) told {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childOrders+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // the child ends when it is closed
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_ = in.Close()
	var got told
	if err == nil {
		err = json.Unmarshal(line, &got)
	}
	if err == nil && got.Failed != "" {
		err = fmt.Errorf("%s", got.Failed)
	}
	if err != nil {
		t.Fatalf("the child: %v", err)
	}
	return got
}
