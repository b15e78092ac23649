package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/keyload/keyload/internal/engine"
)

// Sample is what a store and the process it is in have used so far.
type Sample struct {
	engine.Stats
	// PeakBytes is the most memory since resetPeak, ResidentBytes the memory now.
	// Where the system does not tell, both are what the Go runtime has asked for.
	PeakBytes     uint64 `json:"peakBytes"`
	ResidentBytes uint64 `json:"residentBytes"`
	// CPUMicros is processor time, of all threads, in user and system mode.
	CPUMicros int64 `json:"cpuMicros"`
}

func sampleOf(e *engine.Engine) Sample {
	s := Sample{Stats: e.Stats(), CPUMicros: processorTime().Microseconds()}
	s.PeakBytes, s.ResidentBytes = memory()
	return s
}

func memory() (peak, resident uint64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys, m.Sys
	}
	return procValue(text, "VmHWM:"), procValue(text, "VmRSS:")
}

// resetPeak makes the peak begin anew. Where that is not possible the peak is
// that of the process's life.
func resetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// procValue reads a line such as "VmHWM:   123 kB" as bytes; 0 when it is not
// there.
func procValue(text []byte, name string) uint64 {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) >= 2 && string(fields[0]) == name {
			n, _ := strconv.ParseUint(string(fields[1]), 10, 64)
			return n << 10
		}
	}
	return 0
}

// Machine is what the figures depend on.
type Machine struct {
	CPUs        int    `json:"cpus"`
	MemoryBytes uint64 `json:"memoryBytes,omitempty"` // 0 where the system does not tell
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Go          string `json:"go"`
	// FsyncMillis is the median time of a 4 KiB append with fsync before the
	// workloads, FsyncAfterMillis after them.
	FsyncMillis      float64 `json:"fsyncMillis"`
	FsyncAfterMillis float64 `json:"fsyncAfterMillis"`
}

func machine() Machine {
	m := Machine{CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.MemoryBytes = procValue(text, "MemTotal:")
	}
	return m
}

const appendBytes = 4096

// fsyncMillis is the median time of so many appends of 4 KiB with fsync in dir.
func fsyncMillis(dir string, appends int) (float64, error) {
	f, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := bytes.Repeat([]byte{0xA5}, appendBytes)
	took := make([]time.Duration, appends)
	for i := range took {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return millis(took[appends/2]), nil
}

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// below makes a new directory for one measurement.
func below(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(dir, "keyload-bench-")
	if err != nil {
		return "", err
	}
	return filepath.Abs(made)
}
