package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

func parse(t *testing.T, args ...string) *Command {
	t.Helper()
	var c Command
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &c
}

func TestWithoutFlagsTheCommandMeasuresEverythingOnDisk(t *testing.T) {
	c := parse(t)
	if len(c.Workloads) != 0 || len(c.Modes) != 2 || c.Modes[0] != Embedded || c.Modes[1] != Wire || len(c.Payload) != 1 ||
		c.Payload[0] != 256 || c.Runs != 3 || c.Seconds != 3 || c.Count != nil || c.Backlog != 1_000_000 || c.Durability != api.DurableDisk {
		t.Errorf("%+v", c)
	}
	found, err := named(c.Workloads)
	if err != nil || len(found) != len(workloads()) {
		t.Errorf("%d workloads: %v", len(found), err)
	}
}

func TestTheCommandRefusesWhatCannotBeMeasured(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		ok   bool
	}{
		{"payload below", []string{"--payload", "63"}, false},
		{"payload at", []string{"--payload", "64"}, true},
		{"largest payload", []string{"--payload", "65536"}, true},
		{"payload above", []string{"--payload", "65537"}, false},
		{"no run", []string{"--runs", "0"}, false},
		{"one run", []string{"--runs", "1"}, true},
		{"no time", []string{"--seconds", "0"}, false},
		{"cycles instead of time", []string{"--seconds", "0", "--count", "1"}, true},
		{"no cycle", []string{"--count", "0"}, false},
		{"negative count", []string{"--count=-1"}, false},
		{"no backlog", []string{"--backlog", "0"}, true},
		{"negative backlog", []string{"--backlog=-1"}, false},
		{"largest backlog", []string{"--backlog", "500000000"}, true},
		{"backlog above", []string{"--backlog", "500000001"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := parse(t, c.args...).check()
			if (err == nil) != c.ok || err != nil && fault.From(err).Code != fault.Validation {
				t.Errorf("%v: %v", c.args, err)
			}
		})
	}
}

func TestAnUnknownWorkloadIsRefusedAndNothingIsMade(t *testing.T) {
	c := parse(t, "--workloads", "A1,Z9")
	c.Dir = filepath.Join(t.TempDir(), "new")
	_, err := c.Measure(t.Context(), nil, false)
	if err == nil || fault.From(err).Code != fault.Validation {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("the directory was made: %v", err)
	}
}

func TestTheCommandMeasuresProfilesAndCleansUp(t *testing.T) {
	dir := t.TempDir()
	profile := filepath.Join(dir, "cpu.pprof")
	c := parse(t, "--workloads", "a1,b1", "--modes", "embedded", "--count", "20", "--runs", "2", "--durability", "process", "--profile", profile)
	c.Dir = filepath.Join(dir, "stores")
	var shown bytes.Buffer
	report, err := c.Measure(t.Context(), &shown, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != 2 || len(report.Results[0].RunsPerSecond) != 2 || report.Results[1].Messages != 20 {
		t.Errorf("%+v", report.Results)
	}
	for _, name := range []string{"cpu-A1-256.pprof", "cpu-B1-256.pprof"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(c.Dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

func TestAnInterruptEndsTheMeasurementAndCleansUp(t *testing.T) {
	c := parse(t, "--workloads", "A1", "--modes", "embedded", "--seconds", "600", "--durability", "process")
	c.Dir = t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	measured := make(chan error, 1)
	go func() {
		_, err := c.Measure(ctx, nil, false)
		measured <- err
	}()
	cancel()
	if err := <-measured; err == nil {
		t.Error("no error")
	}
	if left, err := os.ReadDir(c.Dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}
