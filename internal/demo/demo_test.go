package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
)

// TestMain lets the test binary be the child, so that the tests kill real
// processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childCommand {
		os.Exit(childMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func childMain(args []string) int {
	var o ChildOptions
	flags := flag.NewFlagSet(childCommand, flag.ExitOnError)
	flags.StringVar(&o.Dir, "dir", "", "")
	flags.Uint64Var(&o.Seed, "seed", 0, "")
	flags.Int64Var(&o.Started, "started", 0, "")
	flags.IntVar(&o.Workers, "workers", 0, "")
	flags.BoolVar(&o.Read, "read", false, "")
	flags.Parse(args)
	if RunChild(context.Background(), o, os.Stdin, os.Stdout) != nil {
		return 1
	}
	return 0
}

// runDemo runs the demo with --json and returns its last line.
func runDemo(t *testing.T, o Options) (Summary, string) {
	t.Helper()
	var out, progress bytes.Buffer
	o.JSON, o.Out, o.Err = true, &out, &progress
	err := Run(t.Context(), o)
	var s Summary
	if out.Len() > 0 {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
			t.Fatalf("last line: %v", err)
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, progress.String(), out.String())
	}
	return s, progress.String()
}

func TestThreeKillsLoseNothingAndRepeatNothing(t *testing.T) {
	s, progress := runDemo(t, Options{Kills: 3, Workers: 8})
	t.Logf("%s%+v", progress, s)
	want := Summary{
		Deliveries: 329, Events: 329, Published: 329, Messages: 78, Effects: 78, Kills: 3, Workers: 8, Seed: s.Seed,
		Retries: s.Retries, LeaseLosses: s.LeaseLosses, Renewals: s.Renewals, LateRefused: s.LateRefused,
		ReplayedReceipts: s.ReplayedReceipts, KillsInGaps: s.KillsInGaps, Seconds: s.Seconds,
		Groups: map[string]GroupSummary{},
	}
	for name, effects := range map[string]int{"audit": 329, "reviews": 41} {
		g := s.Groups[name]
		want.Groups[name] = GroupSummary{
			Checkpoint: 329, Tail: 329, Effects: effects, MaxGapRuns: g.MaxGapRuns, Retries: g.Retries, LeaseLosses: g.LeaseLosses,
		}
		if g.MaxGapRuns == 0 || g.Retries == 0 || g.LeaseLosses == 0 {
			t.Errorf("group %s had no gap, retry or lost lease: %+v", name, g)
		}
	}
	if got, _ := json.Marshal(s); string(got) != mustJSON(t, want) {
		t.Errorf("got  %s\nwant %s", got, mustJSON(t, want))
	}
	// A killed feeder leaves at least a tenth of the input behind, which its
	// successor repeats; some handlers fail by design.
	if s.ReplayedReceipts < 329/10 || s.Retries < int64(noticeTrouble.failOnce)/2 || s.LeaseLosses == 0 {
		t.Errorf("nothing was repeated, retried or lost on the way: %+v", s)
	}
	if s.Renewals == 0 || s.LateRefused == 0 {
		t.Errorf("no lease was renewed, or no worker came back too late: %+v", s)
	}
	if s.KillsInGaps == 0 {
		t.Errorf("no kill left a group with a gap:\n%s", progress)
	}
	for _, during := range []phase{feeding, processing} {
		if !strings.Contains(progress, "while "+string(during)) {
			t.Errorf("no kill came while %s:\n%s", during, progress)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestADirectoryThatIsNotEmptyIsRefusedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Options{Kills: 0, Workers: 1, Dir: dir, Out: &bytes.Buffer{}})
	if e := fault.From(err); e == nil || e.Code != fault.Conflict || e.Reason != "directory_not_empty" {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
