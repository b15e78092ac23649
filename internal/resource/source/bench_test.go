package source

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
)

// One operation is one command of n events of 256 bytes, applied and handed to
// the store without a sync.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{1, 100} {
		for _, ids := range []string{"own ids", "derived ids"} {
			b.Run(fmt.Sprintf("%d events, %s", n, ids), func(b *testing.B) { benchPublish(b, n, ids == "own ids") })
		}
	}
}

func benchPublish(b *testing.B, n int, own bool) {
	bed := newBedIn(b, vfs.Default, b.TempDir(), api.SourcePolicy{MaxEvents: 1 << 40, MaxBytes: 1 << 50})
	defer bed.close()
	list := make([]api.Event, n)
	payload := api.JSON(`"` + strings.Repeat("7", 254) + `"`)
	var apply time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		for j := range list {
			list[j] = api.Event{Type: "Placed", Payload: payload, SchemaVersion: 1}
			if own {
				list[j].EventID = fmt.Sprintf("%08x-0000-7000-8000-%012x", i, j)
			}
		}
		bed.must(bed.apply(func(c *op.Ctx) error {
			began := time.Now()
			r, k, err := Topic(&c.Scope, "orders", 1)
			if err == nil {
				_, err = Append(c, r, k, 0, api.ExpectAny(), list)
			}
			apply += time.Since(began)
			return err
		}))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
	b.ReportMetric(float64(apply.Nanoseconds())/float64(b.N*n), "ns-apply/event")
}

// One operation is one page of 100 events of 256 bytes.
func BenchmarkRead(b *testing.B) {
	bed := newBed(b, api.SourcePolicy{})
	payload := api.JSON(`"` + strings.Repeat("7", 254) + `"`)
	for i := range 100 {
		list := make([]api.Event, 100)
		for j := range list {
			list[j] = api.Event{EventID: fmt.Sprintf("%d-%d", i, j), Type: "Placed", Payload: payload, SchemaVersion: 1}
		}
		if _, err := bed.publish(list...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		err := bed.view(func(v *op.View) error {
			_, err := ReadPage(v, bed.topic, bed.orders(), Read{After: uint64(i % 9900), Limit: 100, MaxBytes: 8 << 20})
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*100), "ns/event")
}
