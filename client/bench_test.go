package client_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// BenchmarkWire commits publishes of 256-byte events from many goroutines:
// embedded, over one session, and with an HTTP request each. The store is in
// memory, so the differences are the cost of the wire, both ends included.
func BenchmarkWire(b *testing.B) {
	for _, load := range []struct{ callers, events int }{{2, 1}, {64, 1}, {16, 100}} {
		for _, over := range []string{"embedded", "session", "http"} {
			b.Run(fmt.Sprintf("%s/%dx%d", over, load.callers, load.events), func(b *testing.B) {
				bed := newBed(b)
				c := bed.db.Calls
				switch over {
				case "session":
					c = bed.client(bed.server.URL()).Calls
				case "http":
					c = bed.client(bed.server.URL(), client.HTTPOnly()).Calls
				}
				benchmarkCommits(b, c, load.callers, load.events)
			})
		}
	}
}

func benchmarkCommits(b *testing.B, c client.Calls, callers, events int) {
	payload := append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, 254)...), '"')
	batch := make([]api.Event, events)
	for i := range batch {
		batch[i] = api.Event{Type: "Added", Payload: payload}
	}
	b.ReportAllocs()
	b.SetParallelism(callers / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Commit(b.Context(), home, api.Mutation{Publish: &api.Publish{Topic: "news", Events: batch}}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
