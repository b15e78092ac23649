package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/keyload/keyload/api"
)

// serverDir makes this test program the server that is measured.
const serverDir = "KEYLOAD_BENCH_SERVER_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(serverDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	serve := ServeCommand{Dir: dir, Durability: api.DurableProcess}
	if err := serve.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// cycles is how many a run of a test has.
const cycles = 50

func testSession(t *testing.T, workloads ...string) *session {
	t.Helper()
	found, err := named(workloads)
	if err != nil {
		t.Fatal(err)
	}
	return &session{
		workloads: found, modes: []Mode{Embedded, Wire, HTTP}, payloads: []int{256}, runs: 1, limit: limit{cycles: cycles},
		backlog: 700, durable: api.DurableProcess, dir: t.TempDir(), appends: 3,
		server: func(ctx context.Context, dir string) (*exec.Cmd, error) {
			cmd, err := again(ctx)
			if err == nil {
				cmd.Env = append(os.Environ(), serverDir+"="+dir)
			}
			return cmd, err
		},
	}
}

// seen counts deliveries by message.
type seen struct {
	mu    sync.Mutex
	times map[string]int
}

func (s *seen) observe(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[id]++
}

// The session itself fails a run in which the store's counters and the clients'
// disagree; here the numbers are known beforehand too.
func TestEveryWorkloadHandlesEachMessageOnce(t *testing.T) {
	for _, w := range workloads() {
		t.Run(w.Name, func(t *testing.T) {
			modes := []Mode{Embedded, Wire}
			if w.Name == "B1" {
				modes = append(modes, HTTP) // differs from Wire in the client only
			}
			for _, mode := range modes {
				t.Run(string(mode), func(t *testing.T) {
					s := testSession(t, w.Name)
					s.modes = []Mode{mode}
					deliveries := seen{times: map[string]int{}}
					s.observe = deliveries.observe
					report, err := s.measure(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if len(report.Results) != 1 {
						t.Fatalf("%d results", len(report.Results))
					}
					r := report.Results[0]
					if w.Name == "E" { // whose cycle it is depends on who runs
						checkFan(t, w, r, &deliveries)
						return
					}
					if want := int64(cycles * w.Batch); r.Messages != want {
						t.Errorf("%d messages, want %d", r.Messages, want)
					}
					checkSteps(t, w, r)
					checkDeliveries(t, w, &deliveries)
				})
			}
		})
	}
}

// checkFan: the clients of E share their cycles; no group was given an event twice,
// and what counts is what one group finished.
func checkFan(t *testing.T, w Workload, r *Result, s *seen) {
	t.Helper()
	if r.Messages%int64(w.Batch) != 0 || r.Latency["publish"].Calls == 0 {
		t.Errorf("%d messages, latencies %v", r.Messages, r.Latency)
	}
	if len(s.times) == 0 {
		t.Error("nothing was delivered")
	}
	for id, n := range s.times {
		if n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
}

func checkSteps(t *testing.T, w Workload, r *Result) {
	t.Helper()
	want := map[string]uint64{"cycle": cycles}
	switch w.Name[:1] {
	case "A":
		want["publish"] = cycles
		if strings.HasPrefix(w.Name, "AQ") {
			want = map[string]uint64{"cycle": cycles, "enqueue": cycles}
		}
	case "B", "C":
		want["enqueue"] = cycles
		fallthrough
	default:
		want["receive"], want["complete"] = cycles, cycles
	}
	for name, calls := range want {
		if got := r.Latency[name]; got.Calls != calls || got.P50 <= 0 || got.P99 < got.P50 || got.Max < got.P99 {
			t.Errorf("%s: %+v, want %d calls with rising latencies", name, got, calls)
		}
	}
	if len(r.Latency) != len(want) {
		t.Errorf("latencies of %v, want %v", r.Latency, want)
	}
	m := r.PerMessage
	if commands := float64(len(want)-1) / float64(w.Batch); m.Commands < commands || m.Commands > 1.2*commands {
		t.Errorf("%v commands a message, want %v and little of the store's own", m.Commands, commands)
	}
	if m.RowsStored <= 0 || m.RowsWritten < m.RowsStored || m.LogBytes < 256 && w.Name[:1] != "D" {
		t.Errorf("a message cost %+v", m)
	}
	if r.PeakBytes == 0 || r.ResidentBytes == 0 {
		t.Errorf("memory: peak %d, resident %d", r.PeakBytes, r.ResidentBytes)
	}
}

// checkDeliveries counts those of the cycles, of the first cycle of each client,
// and of what prepares a workload.
func checkDeliveries(t *testing.T, w Workload, s *seen) {
	t.Helper()
	want := (cycles + w.Clients) * w.Batch
	switch w.Name[:1] {
	case "A":
		want = 0
	case "C":
		want += 2 * probeReceives
	case "D":
		want++
	}
	if len(s.times) != want {
		t.Errorf("%d messages were delivered, want %d", len(s.times), want)
	}
	for id, n := range s.times {
		if n != 1 {
			t.Errorf("message %s was delivered %d times", id, n)
		}
	}
}

// The rows of a message that was stored long ago are read from the store, those
// of a new one from memory; the depth of the queue makes no other difference.
func TestAReceiveBeforeABacklogReadsAtMostTheRowsOfItsMessageMore(t *testing.T) {
	s := testSession(t, "C")
	s.modes = []Mode{Embedded}
	report, err := s.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k := report.Results[0].ReceiveKeys
	if k == nil || k.Empty <= 0 || k.Backlog > k.Empty+2 || k.Waiting != 700 {
		t.Errorf("keys of a receive: %+v", k)
	}
}

func TestRunsOfABacklogShareItsStoreAndOthersDoNot(t *testing.T) {
	for _, c := range []struct {
		workload string
		stores   int
	}{{"A1", 3}, {"C", 1}} {
		s := testSession(t, c.workload)
		s.modes, s.runs = []Mode{Embedded}, 3
		report, err := s.measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := report.Results[0]
		if s.stores != c.stores || len(r.RunsPerSecond) != 3 || r.PerSecond != r.RunsPerSecond[1] {
			t.Errorf("%s: %d stores, want %d; rates %v, reported %v", c.workload, s.stores, c.stores, r.RunsPerSecond, r.PerSecond)
		}
		left, err := os.ReadDir(s.dir)
		if err != nil || len(left) != 0 {
			t.Errorf("%s left %v behind (%v)", c.workload, left, err)
		}
	}
}

func TestCountersThatDisagreeFailTheRun(t *testing.T) {
	s := testSession(t, "B1")
	s.modes = []Mode{Embedded}
	set := setting{s.workloads[0], Embedded, 256}
	b, err := s.open(t.Context(), set, "")
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if _, err := s.run(t.Context(), b, set, "", false); err != nil {
		t.Fatal(err)
	}
	b.done.received++
	if err := b.verify(t.Context()); err == nil || !strings.Contains(err.Error(), "messages delivered") {
		t.Errorf("a delivery too many: %v", err)
	}
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	s := testSession(t, "A1")
	s.modes = []Mode{Wire}
	if err := os.WriteFile(s.dir+"/store-1", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.measure(t.Context())
	if err == nil || !strings.Contains(err.Error(), "store-1") {
		t.Errorf("got %v", err)
	}
}

func TestTheReportIsWrittenForPeopleAndForPrograms(t *testing.T) {
	s := testSession(t, "A1", "C")
	s.modes = []Mode{Embedded}
	var shown bytes.Buffer
	s.progress = newProgress(&shown, false)
	report, err := s.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(shown.String(), "\n"); lines != 2 {
		t.Errorf("%d lines of progress, want one for each result:\n%s", lines, shown.String())
	}
	var text, line bytes.Buffer
	if err := report.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A1", "C", "embedded", "append of 4 KiB with fsync", "before 700 messages"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, text.String())
		}
	}
	if err := report.WriteJSON(&line); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(line.Bytes(), &back); err != nil || bytes.Count(line.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("%v:\n%s", err, line.String())
	}
	if back.Machine.FsyncMillis <= 0 || back.Machine.FsyncAfterMillis <= 0 || back.Machine.CPUs == 0 || len(back.Results) != 2 || back.Results[0].PerSecond <= 0 {
		t.Errorf("read back: %s", line.String())
	}
}

func TestPayloadsAreJSONOfTheirSizeAndDiffer(t *testing.T) {
	for _, size := range []int{minPayload, 256, 4096, maxPayload} {
		different := map[string]bool{}
		for _, p := range payloads(size) {
			if len(p) != size || !json.Valid(p) {
				t.Fatalf("%d bytes, want %d: %s", len(p), size, p)
			}
			different[string(p)] = true
		}
		if len(different) != payloadKinds {
			t.Errorf("%d different payloads of %d bytes, want %d", len(different), size, payloadKinds)
		}
	}
}
