package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/keyload/keyload/api"
)

// Report is everything that was measured.
type Report struct {
	Machine    Machine        `json:"machine"`
	Durability api.Durability `json:"durability"`
	Results    []*Result      `json:"results"`
}

// Result is the run in the middle of the runs of one workload in one mode with
// one size of payloads.
type Result struct {
	Workload     string  `json:"workload"`
	Title        string  `json:"title"`
	Mode         Mode    `json:"mode"`
	PayloadBytes int     `json:"payloadBytes"`
	Clients      int     `json:"clients"`
	Batch        int     `json:"batch"`
	Messages     int64   `json:"messages"` // that went all the way
	Seconds      float64 `json:"seconds"`
	PerSecond    float64 `json:"perSecond"`
	// RunsPerSecond are the rates of all runs, least first.
	RunsPerSecond []float64 `json:"runsPerSecond"`
	// Latency is by kind of call; cycle is all calls of a cycle together.
	Latency map[string]Latency `json:"latency"`
	// PerMessage is what the store did, divided by the messages.
	PerMessage PerMessage `json:"perMessage"`
	// ReceiveKeys are the keys one receive of one message reads, where that was
	// looked at.
	ReceiveKeys *ReceiveKeys `json:"receiveKeys,omitempty"`
	// PeakBytes and ResidentBytes are of the process that has the store, during
	// and after the run; embedded, the clients are in it too.
	PeakBytes     uint64 `json:"peakBytes"`
	ResidentBytes uint64 `json:"residentBytes"`
	DiskBytes     uint64 `json:"diskBytes"`
}

// Latency is how long calls took, in milliseconds.
type Latency struct {
	Calls uint64  `json:"calls"`
	P50   float64 `json:"p50Millis"`
	P99   float64 `json:"p99Millis"`
	Max   float64 `json:"maxMillis"`
}

// PerMessage is what one message cost on average.
type PerMessage struct {
	Commands    float64 `json:"commands"`
	Entries     float64 `json:"entries"`
	Syncs       float64 `json:"syncs"`
	KeysRead    float64 `json:"keysRead"`
	RowsScanned float64 `json:"rowsScanned"`
	RowsWritten float64 `json:"rowsWritten"` // by commands
	RowsStored  float64 `json:"rowsStored"`  // after writes of one entry joined
	LogBytes    float64 `json:"logBytes"`
	// CPUMicros is processor time of the process that has the store, and
	// ClientCPUMicros that of the clients where they are in another process.
	CPUMicros       float64 `json:"cpuMicros"`
	ClientCPUMicros float64 `json:"clientCpuMicros,omitempty"`
}

// ReceiveKeys compares a receive of a short queue with one of a long queue.
type ReceiveKeys struct {
	Empty   float64 `json:"empty"`
	Backlog float64 `json:"backlog"`
	Waiting int     `json:"waiting"` // messages of the backlog
}

func newResult(set setting, b *bed, d *drive, before, after Sample) *Result {
	r := &Result{
		Workload: set.Name, Title: set.Title, Mode: set.mode, PayloadBytes: set.payload, Clients: set.Clients, Batch: set.Batch,
		Messages: d.messages, Seconds: d.elapsed.Seconds(), Latency: map[string]Latency{},
		PeakBytes: after.PeakBytes, ResidentBytes: after.ResidentBytes, DiskBytes: after.Disk,
	}
	r.PerSecond = float64(d.messages) / max(d.elapsed, time.Nanosecond).Seconds()
	for i := range d.total.latency {
		if h := &d.total.latency[i]; h.total > 0 {
			r.Latency[stepNames[i]] = Latency{h.total, millis(h.quantile(0.5)), millis(h.quantile(0.99)), millis(h.max)}
		}
	}
	per := func(before, after uint64) float64 { return float64(after-before) / float64(max(d.messages, 1)) }
	r.PerMessage = PerMessage{
		Commands: per(before.Commands, after.Commands), Entries: per(before.Entries, after.Entries), Syncs: per(before.Syncs, after.Syncs),
		KeysRead: per(before.Gets, after.Gets), RowsScanned: per(before.Scanned, after.Scanned),
		RowsWritten: per(before.Written, after.Written), RowsStored: per(before.Rows, after.Rows), LogBytes: per(before.Bytes, after.Bytes),
		CPUMicros: per(uint64(before.CPUMicros), uint64(after.CPUMicros)),
	}
	if set.mode != Embedded {
		r.PerMessage.ClientCPUMicros = per(0, uint64(d.processor.Microseconds()))
	}
	if set.probe && set.mode != Cluster {
		r.ReceiveKeys = &ReceiveKeys{Empty: b.probes[0], Backlog: b.probes[1], Waiting: b.backlog}
	}
	return r
}

// line sums up a result while others are still to come.
func (r *Result) line() string {
	c := r.Latency[stepNames[stepCycle]]
	return fmt.Sprintf("%-8s %-8s %5d B  %10s msg/s  p50 %.2f ms  p99 %.2f ms", r.Workload, r.Mode, r.PayloadBytes, thousands(r.PerSecond), c.P50, c.P99)
}

// WriteJSON writes the report as one line.
func (r *Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(table.Row{
		"workload", "mode", "payload", "msg/s", "p50 ms", "p99 ms", "msg/entry", "msg/sync",
		"keys read", "scanned", "rows", "stored", "log B", "CPU µs", "client µs", "peak MiB",
	})
	var right []table.ColumnConfig
	for i := 3; i <= 16; i++ {
		right = append(right, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for _, x := range r.Results {
		c, m := x.Latency[stepNames[stepCycle]], x.PerMessage
		row := table.Row{x.Workload, x.Mode, x.PayloadBytes, thousands(x.PerSecond), fmt.Sprintf("%.2f", c.P50), fmt.Sprintf("%.2f", c.P99)}
		if x.Mode == Cluster { // whose nodes are not looked into
			t.AppendRow(append(row, "", "", "", "", "", "", "", "", decimal(m.ClientCPUMicros)))
			continue
		}
		t.AppendRow(append(row,
			inverse(m.Entries), inverse(m.Syncs), fmt.Sprintf("%.2f", m.KeysRead), fmt.Sprintf("%.2f", m.RowsScanned),
			fmt.Sprintf("%.2f", m.RowsWritten), fmt.Sprintf("%.2f", m.RowsStored), fmt.Sprintf("%.0f", m.LogBytes),
			fmt.Sprintf("%.1f", m.CPUMicros), decimal(m.ClientCPUMicros), x.PeakBytes>>20,
		))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d processors, %d MiB of memory, %s/%s, %s; durability %s; append of 4 KiB with fsync %.3f ms before, %.3f ms after (%s/s)\n",
		r.Machine.CPUs, r.Machine.MemoryBytes>>20, r.Machine.OS, r.Machine.Arch, r.Machine.Go, r.Durability,
		r.Machine.FsyncMillis, r.Machine.FsyncAfterMillis, thousands(1000/max(r.Machine.FsyncMillis, 0.001)))
	b.WriteString(t.Render())
	b.WriteString("\nmsg/s is the median of the runs. p50 and p99 are of a cycle of calls. Keys, rows, log bytes and processor time are per message;\nprocessor time and memory are of the process that has the store, embedded with the clients in it.\n")
	for _, x := range r.Results {
		if k := x.ReceiveKeys; k != nil {
			fmt.Fprintf(&b, "%s %s: a receive reads %.1f keys when nothing else waits and %.1f before %s messages\n",
				x.Workload, x.Mode, k.Empty, k.Backlog, thousands(float64(k.Waiting)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// decimal leaves out what was not measured.
func decimal(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", v)
}

func inverse(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", 1/v)
}

// thousands writes a number without decimals in groups of three digits.
func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
