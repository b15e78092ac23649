package bench

import (
	"context"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
)

// BenchmarkParked64 publishes one event at a time to a group of which 64 workers
// wait: what idle workers cost is in commands/msg, which is 3 when only the one
// that gets the event comes to the log: publish, receive, acknowledge.
func BenchmarkParked64(b *testing.B) {
	found, err := named([]string{"A1"})
	if err != nil {
		b.Fatal(err)
	}
	s := &session{workloads: found, durable: api.DurableProcess, dir: b.TempDir()}
	bed, err := s.open(b.Context(), setting{found[0], Embedded, 256}, "parked")
	if err != nil {
		b.Fatal(err)
	}
	defer bed.close()
	if err := bed.configureGroups(b.Context(), 1); err != nil {
		b.Fatal(err)
	}
	ctx, leave := context.WithCancel(b.Context())
	delivered, left := make(chan struct{}, 1), make(chan error, 64)
	for range cap(left) {
		go func() { left <- attend(ctx, bed, delivered) }()
	}
	p, r := newPublisher(bed, 0), &recorder{}
	one := func() {
		if _, err := p.cycle(ctx, r); err != nil {
			b.Fatal(err)
		}
		<-delivered
	}
	for range 200 { // by now all of them wait
		one()
	}
	before, err := bed.sample()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		one()
	}
	after, err := bed.sample()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after.Commands-before.Commands)/float64(b.N), "commands/msg")
	leave()
	for range cap(left) {
		if err := <-left; fault.CodeOf(err) != fault.Cancelled {
			b.Error(err)
		}
	}
}

// attend is one worker: it waits for an event, acknowledges it, and waits again.
func attend(ctx context.Context, b *bed, delivered chan<- struct{}) error {
	w, r := newSubscribing(b, 0, 1), &recorder{}
	w.receive.WaitMillis = limits.WaitMillis
	for {
		n, err := w.take(ctx, r)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if err := w.ack(ctx, r); err != nil {
			return err
		}
		delivered <- struct{}{}
	}
}
