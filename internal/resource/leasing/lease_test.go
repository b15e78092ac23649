package leasing

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

func TestAnInstantOfZeroIsNoneAndNoneIsAfterTheLast(t *testing.T) {
	for _, c := range [][3]int64{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 6, 5}, {6, 5, 5}} {
		if got := Earlier(c[0], c[1]); got != c[2] {
			t.Errorf("of %d and %d the earlier is %d", c[0], c[1], got)
		}
	}
	last := int64(api.MaxTime)
	for _, c := range [][3]int64{{1, 2, 3}, {last - 5, 4, last - 1}, {last - 5, 5, last}, {last - 5, 6, last}, {last, 1 << 62, last}} {
		if got := After(c[0], c[1]); got != c[2] {
			t.Errorf("%d after %d is %d, want %d", c[1], c[0], got, c[2])
		}
	}
}

func TestBackoffGrowsByItsFactorUpToItsMost(t *testing.T) {
	p := &api.RetryPolicy{BaseMillis: 100, MaxMillis: 1_000, Factor: 3, Jitter: api.JitterNone}
	for failed, want := range map[uint64]int64{0: 100, 1: 100, 2: 300, 3: 900, 4: 1_000, 1_000: 1_000} {
		if got := Backoff(nil, p, failed); got != want {
			t.Errorf("after %d failures %d, want %d", failed, got, want)
		}
	}
	p.Jitter = api.JitterFull
	c := op.NewCtx(op.Scope{}, nil, [16]byte{}, 1, 1, 42)
	seen := map[int64]bool{}
	for range 1_000 {
		w := Backoff(c, p, 2)
		if w < 0 || w > 300 {
			t.Fatalf("with jitter it waits %d of at most 300", w)
		}
		seen[w] = true
	}
	if len(seen) < 100 {
		t.Errorf("a thousand waits have %d lengths", len(seen))
	}
}

func TestALeaseIsNeitherLongerNorOlderThanThePolicyAllows(t *testing.T) {
	terms := Terms{Of: "queue", What: "message", MaxSeconds: 10, MaxAgeSeconds: 25}
	const now = 20_000 // the lease was given at 0
	for _, c := range []struct {
		until, seconds, want int64
		code                 fault.Code
	}{
		{21_000, 4, 24_000, ""}, {21_000, 5, 25_000, ""}, {21_000, 6, 25_000, ""}, {21_000, 10, 25_000, ""},
		{21_000, 11, 0, fault.Validation}, {24_999, 10, 25_000, ""}, {25_000, 10, 0, fault.ResourceExhausted}, {25_000, 5, 25_000, ""},
	} {
		got, err := terms.Renewed(0, c.until, now, c.seconds)
		if got != c.want || fault.CodeOf(err) != c.code {
			t.Errorf("until %d, renewed for %d s: %d (%v), want %d (%s)", c.until, c.seconds, got, err, c.want, c.code)
		}
	}
}
