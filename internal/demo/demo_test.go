package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
)

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

func TestLeadersThatAreKilledLoseNothingAndRepeatNothing(t *testing.T) {
	s, progress := runDemo(t, Options{Cluster: true, Kills: 3, Workers: 4})
	t.Logf("%s%+v", progress, s)
	if s.Lost+s.RepeatedEffects+s.Wrong+s.CheckFindings != 0 || s.Kills != 3 || s.Nodes != nodeCount || s.DigestsEqual == nil || !*s.DigestsEqual {
		t.Errorf("%+v", s)
	}
	if s.Events != 329 || s.Messages != 78 || s.Effects != 78 || s.Groups["audit"].Effects != 329 || s.Groups["reviews"].Effects != 41 {
		t.Errorf("not everything is there: %+v", s)
	}
	for kill := range 3 {
		if !strings.Contains(progress, fmt.Sprintf("kill %d: node ", kill+1)) {
			t.Errorf("kill %d is not told:\n%s", kill+1, progress)
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
