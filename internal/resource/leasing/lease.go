package leasing

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

// Earlier is the earlier of two instants of which 0 is none.
func Earlier(a, b int64) int64 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// After adds a duration, in milliseconds, to an instant and stops at the last
// instant there is.
func After(t, millis int64) int64 {
	if millis > int64(api.MaxTime)-t {
		return int64(api.MaxTime)
	}
	return t + millis
}

// Backoff is how long a delivery waits, in milliseconds, after so many failures
// and lost leases: base × factor^(n−1) at most max, then jitter, drawn from what
// the leader logged.
func Backoff(c *op.Ctx, p *api.RetryPolicy, failed uint64) int64 {
	wait := min(p.BaseMillis, p.MaxMillis)
	for n := failed; n > 1 && wait < p.MaxMillis && p.Factor > 1; n-- {
		wait = min(wait*p.Factor, p.MaxMillis)
	}
	if p.Jitter == api.JitterNone {
		return wait
	}
	return int64(c.Random(uint64(wait) + 1))
}

// Terms are what a policy says of leases. Of and What name its owner and what is
// leased in refusals: "queue" and "message".
type Terms struct {
	Of, What      string
	MaxSeconds    int64
	MaxAgeSeconds int64
}

// Check refuses a lease longer than the policy allows. Errors: Validation.
func (t Terms) Check(seconds int64) error {
	if seconds <= t.MaxSeconds {
		return nil
	}
	return fault.Invalid("/leaseSeconds", "the %s's policy allows at most %d (maxLeaseSeconds)", t.Of, t.MaxSeconds).
		With("limit", "maxLeaseSeconds").With("max", "%d", t.MaxSeconds).With("asked", "%d", seconds)
}

// Renewed is the new end of a lease that was given first, and ends until, when it
// is renewed now: no later than its greatest age. Errors: Validation beyond the
// policy's longest lease, ResourceExhausted when it is as old as it may get.
func (t Terms) Renewed(first, until, now, seconds int64) (int64, error) {
	if err := t.Check(seconds); err != nil {
		return 0, err
	}
	last := After(first, t.MaxAgeSeconds*1000)
	if last <= until && After(now, seconds*1000) > last {
		return 0, fault.New(fault.ResourceExhausted, "lease_age_limit", "the %s has been held since %s and the %s's policy allows %d seconds with all renewals (maxLeaseAgeSeconds); finish it, or release it", t.What, api.Time(first), t.Of, t.MaxAgeSeconds).
			With("limit", "maxLeaseAgeSeconds").With("max", "%d", t.MaxAgeSeconds).
			With("deadline", "%s", api.Time(until)).WithRetry(fault.RetryNever)
	}
	return min(After(now, seconds*1000), last), nil
}
