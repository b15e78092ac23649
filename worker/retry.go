package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/keyload/keyload/fault"
)

const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
	// pausedPause is how often a paused source is asked whether it still is.
	pausedPause = 2 * time.Second
)

// backoff is the pause after the n-th failure, counted from 0, or longer where
// the store says so. A random half keeps workers from coming back together.
func backoff(n int, f *fault.Error) time.Duration {
	d := min(firstPause<<min(n, 16), longestPause)
	d = d/2 + rand.N(d/2+1)
	if f != nil {
		d = max(d, time.Duration(f.RetryAfterMillis)*time.Millisecond)
	}
	return d
}

// pause waits; false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// repeat makes a call until the store has decided or ctx ends. The call must be
// the same every time, command id included.
func (r *run) repeat(ctx context.Context, call func(context.Context) error) error {
	for n := 0; ; n++ {
		err := r.once(ctx, call)
		f := fault.From(err)
		if err == nil || !repeatable(f) || !pause(ctx, backoff(n, f)) {
			return err
		}
	}
}

func (r *run) once(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.attempt())
	defer cancel()
	return call(ctx)
}
