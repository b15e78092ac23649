package backup_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/check"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/system"
)

// Variables that make this test binary a process that restores a backup.
const (
	childArchive = "KEYLOAD_TEST_RESTORE_ARCHIVE"
	childTarget  = "KEYLOAD_TEST_RESTORE_TARGET"
)

// restoringChild restores and writes a line for every step, to be killed at.
func restoringChild() bool {
	if os.Getenv(childArchive) == "" {
		return false
	}
	step := func() { fmt.Println("step") }
	_, err := backup.Restore(context.Background(), fromFile(os.Getenv(childArchive)), os.Getenv(childTarget), backup.RestoreOptions{
		Progress: func(check.Step, int64, int64) { step() },
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("done")
	return true
}

func fromFile(name string) backup.Open {
	return func(context.Context) (io.ReadCloser, error) { return os.Open(name) }
}

// restoreInAChild kills the process after so many lines; 0 is never. It answers
// how many lines it wrote.
func restoreInAChild(t *testing.T, archive, target string, kill int) (lines int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childArchive+"="+archive, childTarget+"="+target)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	last := ""
	for s := bufio.NewScanner(out); s.Scan(); last = s.Text() {
		if lines++; lines == kill {
			must(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); kill == 0 && (err != nil || last != "done") {
		t.Fatalf("the process that restores ended with %v: %s", err, last)
	}
	return lines
}

// A process that restores is killed at random: nothing opens at its target, or
// the whole restored store does; and the same restore again succeeds.
func TestAKilledRestoreLeavesNothingThatOpensAndARepeatSucceeds(t *testing.T) {
	b := newBed(t, vfs.NewMem())
	rng := rand.New(rand.NewPCG(9, 9))
	noise := make([]byte, 30_000)
	for i := range 60 {
		for j := range noise {
			noise[j] = byte(rng.Uint32())
		}
		_, err := b.db.Commit(t.Context(), partition("one"), keyload.Put("docs", fmt.Sprint(i), map[string]any{"noise": noise}))
		must(t, err)
		if i%20 == 0 {
			must(t, b.db.Engine().Store().Flush())
		}
	}
	content, made := b.archive()
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.klb")
	must(t, os.WriteFile(archive, content, 0o600))
	all := restoreInAChild(t, archive, filepath.Join(dir, "whole"), 0)
	if all < 50 {
		t.Errorf("a restore has %d steps: the test tests nothing", all)
	}
	opened, left := 0, 0
	trials := 10
	if os.Getenv("KEYLOAD_LONG") != "" {
		trials = 200
	}
	for trial := range trials {
		target := filepath.Join(dir, fmt.Sprint(trial))
		if trial%2 == 0 {
			must(t, os.Mkdir(target, 0o755))
		}
		kill := 1 + rng.IntN(all)
		if trial < 5 {
			kill = all - trial // around the last steps
		}
		restoreInAChild(t, archive, target, kill)
		if restoredOrNothing(t, target, made) {
			opened++
			continue
		}
		if names, _ := filepath.Glob(filepath.Join(target, "*")); len(names) > 0 {
			left++
		}
		_, err := backup.Restore(t.Context(), fromFile(archive), target, backup.RestoreOptions{})
		must(t, err)
		if !restoredOrNothing(t, target, made) {
			t.Errorf("trial %d: the repeat left nothing", trial)
		}
	}
	if left == 0 {
		t.Error("no killed restore left anything: the test tests nothing")
	}
	t.Logf("%d of %d had finished, %d left something unfinished", opened, trials, left)
}

// restoredOrNothing says whether a store opens; it must be a restored one then.
func restoredOrNothing(t *testing.T, dir string, made *backup.Backup) bool {
	t.Helper()
	s, err := kv.Open(dir, kv.Options{ReadOnly: true, CacheBytes: 1 << 20})
	if errors.Is(err, kv.ErrUnfinished) || errors.Is(err, kv.ErrMissing) {
		return false
	}
	must(t, err)
	n, err := sound(s)
	must(t, err)
	snap := s.NewSnapshot()
	id, ok, err := system.ReadIdentity(snap)
	must(t, err)
	if !ok || n < made.Rows || fmt.Sprintf("%x", id.Incarnation) == string(bytes.ReplaceAll([]byte(made.Incarnation), []byte("-"), nil)) {
		t.Errorf("a store opens that is not a restored one: %d rows, incarnation %x", n, id.Incarnation)
	}
	must(t, errors.Join(snap.Close(), s.Close()))
	return true
}
