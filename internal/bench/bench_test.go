package bench

import (
	"testing"

	"github.com/keyload/keyload/api"
)

// The benchmarks leave out the disk's wait, so that a profile shows what the
// processor does:
//
//	go test ./internal/bench -run '^$' -bench B64 -benchtime 20000x -cpuprofile cpu.pprof
func BenchmarkA64(b *testing.B)      { embedded(b, "A64") }
func BenchmarkA16x100(b *testing.B)  { embedded(b, "A16x100") }
func BenchmarkAQ64(b *testing.B)     { embedded(b, "AQ64") }
func BenchmarkAQ16x100(b *testing.B) { embedded(b, "AQ16x100") }
func BenchmarkB1(b *testing.B)       { embedded(b, "B1") }
func BenchmarkB64(b *testing.B)      { embedded(b, "B64") }
func BenchmarkB16x100(b *testing.B)  { embedded(b, "B16x100") }
func BenchmarkD(b *testing.B)        { embedded(b, "D") }
func BenchmarkDG(b *testing.B)       { embedded(b, "DG") }
func BenchmarkE(b *testing.B)        { embedded(b, "E") }

// embedded does b.N cycles and reports what one message costs.
func embedded(b *testing.B, workload string) {
	found, err := named([]string{workload})
	if err != nil {
		b.Fatal(err)
	}
	s := &session{workloads: found, limit: limit{cycles: int64(b.N)}, durable: api.DurableProcess, dir: b.TempDir()}
	set := setting{found[0], Embedded, 256}
	bed, err := s.open(b.Context(), set, workload)
	if err != nil {
		b.Fatal(err)
	}
	defer bed.close()
	d := newDrive(bed)
	if err := d.warm(b.Context()); err != nil {
		b.Fatal(err)
	}
	before, err := bed.sample()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := d.run(b.Context(), s.limit); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	after, err := bed.sample()
	if err != nil {
		b.Fatal(err)
	}
	bed.done.add(d.total.tally)
	if err := bed.verify(b.Context()); err != nil {
		b.Fatal(err)
	}
	r := newResult(set, bed, d, before, after)
	b.ReportMetric(r.PerSecond, "msg/s")
	b.ReportMetric(r.PerMessage.CPUMicros, "cpu-µs/msg")
	b.ReportMetric(r.PerMessage.KeysRead+r.PerMessage.RowsScanned, "keys/msg")
	b.ReportMetric(r.PerMessage.RowsStored, "rows/msg")
	b.ReportMetric(r.PerMessage.LogBytes, "logB/msg")
}
