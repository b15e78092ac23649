package engine

import (
	"sync"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
)

const (
	// maxBehind is how far the wall clock may be behind logged time.
	maxBehind = limits.ClockBehindMillis * time.Millisecond
	// maxDeparture is how far it may depart from the monotonic clock.
	maxDeparture = limits.ClockDriftMillis * time.Millisecond
	// calmAfter is how long the two must agree again after a departure, so that a
	// machine that slept recovers without a restart.
	calmAfter = 30 * time.Second
)

// clock is the wall clock, watched against the monotonic one.
type clock struct {
	wall      func() time.Time
	monotonic func() time.Time // readings of it are only subtracted
	given     bool             // by a test, which moves it as it likes
	mu        sync.Mutex
	base      time.Time // wall clock when last believed
	baseMono  time.Time // a reading that carries the monotonic clock
	departed  time.Time // since when they agree again after a departure; zero when believed
}

func newClock(wall func() time.Time, watched bool) *clock {
	given := wall != nil && !watched
	if wall == nil {
		wall = time.Now
	}
	return &clock{wall: wall, monotonic: time.Now, given: given, base: wall().Round(0), baseMono: time.Now()}
}

func (c *clock) now() time.Time { return c.wall() }
func (c *clock) millis() int64  { return c.wall().UnixMilli() }

// trusted is nil while the wall clock moves as the monotonic clock does.
func (c *clock) trusted() error {
	if c.given {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, mono := c.wall().Round(0), c.monotonic()
	departure := wall.Sub(c.base) - mono.Sub(c.baseMono)
	if departure < -maxDeparture || departure > maxDeparture {
		c.base, c.baseMono, c.departed = wall, mono, mono
	}
	if c.departed.IsZero() {
		return nil
	}
	if mono.Sub(c.departed) >= calmAfter {
		c.departed = time.Time{}
		return nil
	}
	return fault.New(fault.ClockUncertain, "clock_jumped",
		"the machine's clock jumped by more than %s; commands are refused until it has been steady for %s", maxDeparture, calmAfter)
}

// believe refuses a clock that is behind the time already logged: what is due
// would be late, and leases would last too long.
func (c *clock) believe(logged int64) error {
	if behind := logged - c.millis(); behind > maxBehind.Milliseconds() {
		return fault.New(fault.ClockUncertain, "clock_behind",
			"the machine's clock is %d ms behind the time of the last entry; set it right", behind)
	}
	return nil
}
