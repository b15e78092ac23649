package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/worker"
)

func TestOptionsAreTakenWithinTheirBoundsOnly(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	lane := client.Lane(client.Partition("default", "main", "main", "main"), "jobs")
	for _, c := range []struct {
		name  string
		o     worker.Options
		valid bool
	}{
		{"nothing given", worker.Options{}, true},
		{"a negative concurrency", worker.Options{Concurrency: -1}, false},
		{"one handler", worker.Options{Concurrency: 1}, true},
		{"most handlers", worker.Options{Concurrency: 4096}, true},
		{"one too many", worker.Options{Concurrency: 4097}, false},
		{"a lease below a second", worker.Options{Lease: time.Second - 1}, false},
		{"the shortest lease", worker.Options{Lease: time.Second}, true},
		{"a lease and a half", worker.Options{Lease: 1500 * time.Millisecond}, false},
		{"the longest lease", worker.Options{Lease: 12 * time.Hour}, true},
		{"a longer one", worker.Options{Lease: 12*time.Hour + time.Second}, false},
		{"a negative handler timeout", worker.Options{HandlerTimeout: -1}, false},
		{"a short one", worker.Options{HandlerTimeout: 1}, true},
		{"a generation of a queue", worker.Options{ExpectedGeneration: 1}, false},
	} {
		err := worker.Queue(nil, lane, func(context.Context, *worker.Tx, *worker.Message) error { return nil }, c.o).Run(ended)
		if c.valid != (err == nil) || !c.valid && fault.CodeOf(err) != fault.Validation {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := worker.Queue(nil, lane, nil, worker.Options{}).Run(ended); fault.CodeOf(err) != fault.Validation {
		t.Errorf("without a handler: %v", err)
	}
}
