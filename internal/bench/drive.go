package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// limit ends a run: at a time, or if cycles is not 0 after that many cycles of
// all clients together.
type limit struct {
	time   time.Duration
	cycles int64
}

// drive runs the clients of one workload.
type drive struct {
	bed      *bed
	clients  []cycler
	records  []recorder
	total    recorder // all clients together, after run
	messages int64
	elapsed  time.Duration
	// processor is the time of this process during the run.
	processor time.Duration

	started atomic.Int64 // when run began, in nanoseconds; 0 before
	cycles  atomic.Int64 // begun
}

func newDrive(b *bed) *drive {
	d := &drive{bed: b, records: make([]recorder, b.workload.Clients)}
	for i := range b.workload.Clients {
		d.clients = append(d.clients, b.workload.client(b, i))
	}
	return d
}

// warm does one cycle of each client: connections are made and caches filled.
func (d *drive) warm(ctx context.Context) error {
	records := make([]recorder, len(d.clients))
	err := parallel(ctx, len(d.clients), func(ctx context.Context, i int) error {
		_, err := d.clients[i].cycle(ctx, &records[i])
		return ignoreDone(err)
	})
	for i := range records {
		d.bed.done.add(records[i].tally)
	}
	return err
}

func ignoreDone(err error) error {
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// run lets every client work until the limit. The time it takes ends with the
// last cycle.
func (d *drive) run(ctx context.Context, l limit) error {
	var messages atomic.Int64
	var mu sync.Mutex
	start := time.Now()
	d.started.Store(start.UnixNano())
	err := parallel(ctx, len(d.clients), func(ctx context.Context, i int) error {
		r := &d.records[i]
		n, err := d.work(ctx, d.clients[i], r, start, l)
		messages.Add(n)
		mu.Lock()
		defer mu.Unlock()
		d.elapsed = max(d.elapsed, time.Since(start))
		return err
	})
	d.messages = messages.Load()
	for i := range d.records {
		d.total.merge(&d.records[i])
	}
	return err
}

// work repeats the cycle of one client and counts the messages.
func (d *drive) work(ctx context.Context, c cycler, r *recorder, start time.Time, l limit) (int64, error) {
	messages := int64(0)
	for now := start; ; {
		begun := d.cycles.Add(1)
		if ctx.Err() != nil || l.cycles > 0 && begun > l.cycles || l.cycles == 0 && now.Sub(start) >= l.time {
			return messages, nil
		}
		n, err := c.cycle(ctx, r)
		if err != nil {
			return messages, ignoreDone(err)
		}
		messages += int64(n)
		now = r.since(stepCycle, now)
	}
}

// share is how much of a run is done, from 0 to 1.
func (d *drive) share(l limit) float64 {
	if l.cycles > 0 {
		return float64(d.cycles.Load()) / float64(l.cycles)
	}
	began := d.started.Load()
	if began == 0 {
		return 0
	}
	return float64(time.Now().UnixNano()-began) / float64(l.time)
}
