package engine

import (
	"testing"
	"time"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
)

func reason(err error) string {
	if f := fault.From(err); f != nil {
		return f.Reason
	}
	return ""
}

// fill admits n commands of a tenant.
func fill(t *testing.T, a *admission, tenant string, n, bytes int, urgent bool) {
	t.Helper()
	for i := range n {
		if err := a.enter(tenant, bytes, urgent); err != nil {
			t.Fatalf("command %d of %d of %s: %v", i+1, n, tenant, err)
		}
	}
}

func TestAdmissionEndsAtItsBoundAndKeepsAReserveForWhatFreesThings(t *testing.T) {
	var a admission
	half := limits.AdmittedCommands / 2
	fill(t, &a, "a", half, 1, false)
	if got := reason(a.enter("a", 1, false)); got != "admission_tenant" {
		t.Errorf("one above half of one tenant: %q", got)
	}
	fill(t, &a, "b", half, 1, false)
	if got := reason(a.enter("c", 1, false)); got != "admission_commands" {
		t.Errorf("one above the bound: %q", got)
	}
	fill(t, &a, "a", limits.AdmissionReserve, 1, true)
	if got := reason(a.enter("a", 1, true)); got != "admission_commands" {
		t.Errorf("one above the reserve: %q", got)
	}
	a.leave("a", 1)
	fill(t, &a, "a", 1, 1, true)
}

func TestOneTenantsUrgentCommandsLeaveRoomForOthers(t *testing.T) {
	var a admission
	fill(t, &a, "a", limits.AdmittedCommands/2+limits.AdmissionReserve, 1, true)
	if got := reason(a.enter("a", 1, true)); got != "admission_tenant" {
		t.Errorf("one tenant took more than half and the reserve: %q", got)
	}
	fill(t, &a, "b", 1, 1, false)
}

func TestAdmissionCountsBytes(t *testing.T) {
	var a admission
	half := limits.AdmittedBytes / 2
	fill(t, &a, "a", 1, half, false)
	if got := reason(a.enter("a", 1, false)); got != "admission_tenant" {
		t.Errorf("one byte above half of one tenant: %q", got)
	}
	fill(t, &a, "b", 1, half-1, false)
	fill(t, &a, "c", 1, 1, false)
	if got := reason(a.enter("c", 1, false)); got != "admission_bytes" {
		t.Errorf("one byte above the bound: %q", got)
	}
	a.leave("c", 1)
	a.leave("b", half-1)
	a.leave("a", half)
	if a.count != 0 || a.bytes != 0 || len(a.tenants) != 0 {
		t.Errorf("%d commands and %d bytes of %d tenants are left", a.count, a.bytes, len(a.tenants))
	}
}

func TestAClockBehindLoggedTimeIsNotBelieved(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	c := newClock(func() time.Time { return now }, false)
	logged := now.UnixMilli() + limits.ClockBehindMillis
	if err := c.believe(logged); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	if got := reason(c.believe(logged + 1)); got != "clock_behind" {
		t.Errorf("one millisecond more: %q", got)
	}
}

func TestAClockThatJumpsIsNotTrustedUntilItWasSteady(t *testing.T) {
	start := time.Now()
	wall, mono := start, start
	c := newClock(nil, false)
	c.wall, c.monotonic = func() time.Time { return wall }, func() time.Time { return mono }
	c.base, c.baseMono = wall.Round(0), mono
	step := func(w, m time.Duration) error {
		wall, mono = wall.Add(w), mono.Add(m)
		return c.trusted()
	}
	const bound = limits.ClockDriftMillis * time.Millisecond
	if err := step(time.Hour+bound, time.Hour); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	if got := reason(step(time.Millisecond, 0)); got != "clock_jumped" {
		t.Errorf("one millisecond more: %q", got)
	}
	// What is stamped meanwhile goes on from where the clock was.
	if got, want := c.now(), start.Add(time.Hour); got.Sub(want.Round(0)) != 0 {
		t.Errorf("after a jump it is %v, want %v", got, want)
	}
	if got := reason(step(calmAfter-time.Millisecond, calmAfter-time.Millisecond)); got != "clock_jumped" {
		t.Errorf("not steady for long enough: %q", got)
	}
	if got, want := c.now(), start.Add(time.Hour+calmAfter-time.Millisecond); got.Sub(want.Round(0)) != 0 {
		t.Errorf("not steady for long enough it is %v, want %v", got, want)
	}
	if err := step(time.Millisecond, time.Millisecond); err != nil {
		t.Errorf("steady for long enough: %v", err)
	}
	if got := c.now(); got.Sub(wall.Round(0)) != 0 {
		t.Errorf("steady for long enough it is %v, want %v", got, wall)
	}
	if got := reason(step(-bound-time.Millisecond, 0)); got != "clock_jumped" {
		t.Errorf("backward: %q", got)
	}
}
