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

// clock is the wall clock, watched against the monotonic one. A wall clock that jumped
// is not followed until it has been steady: what is stamped meanwhile, such as an entry
// that was let in just before, gets the time that it was before the jump and what went
// by since. Else one wrong step would be in the log, and every right clock behind it.
type clock struct {
	wall      func() time.Time
	monotonic func() time.Time // readings of it are only subtracted
	given     bool             // by a test, which moves it as it likes
	mu        sync.Mutex
	base      time.Time // wall clock after the last jump, or at the start
	baseMono  time.Time // a reading that carries the monotonic clock
	departed  time.Time // since when they agree again after a jump; zero when followed
	sure      time.Time // the time at the first jump of those; sureMono is the reading
	sureMono  time.Time
}

func newClock(wall func() time.Time, watched bool) *clock {
	given := wall != nil && !watched
	if wall == nil {
		wall = time.Now
	}
	return &clock{wall: wall, monotonic: time.Now, given: given, base: wall().Round(0), baseMono: time.Now()}
}

func (c *clock) millis() int64 { return c.now().UnixMilli() }

// now is the time that may be written down.
func (c *clock) now() time.Time {
	if c.given {
		return c.wall()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, mono := c.look()
	if c.departed.IsZero() {
		return wall
	}
	return c.sure.Add(mono.Sub(c.sureMono))
}

// look reads both clocks and compares them. The lock is held.
func (c *clock) look() (wall, mono time.Time) {
	wall, mono = c.wall().Round(0), c.monotonic()
	expected := c.base.Add(mono.Sub(c.baseMono))
	if departure := wall.Sub(expected); departure < -maxDeparture || departure > maxDeparture {
		if c.departed.IsZero() {
			c.sure, c.sureMono = expected, mono
		}
		c.base, c.baseMono, c.departed = wall, mono, mono
	}
	if !c.departed.IsZero() && mono.Sub(c.departed) >= calmAfter {
		c.departed = time.Time{}
	}
	return wall, mono
}

// trusted is nil while the wall clock moves as the monotonic clock does.
func (c *clock) trusted() error {
	if c.given {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.look(); c.departed.IsZero() {
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
