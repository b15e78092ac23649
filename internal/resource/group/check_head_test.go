package group

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/machine"
)

func TestAGroupWhoseDueWorkIsHalfDoneIsSound(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxWindow: 1_000, MaxInFlight: 1_000})
	b.fill(600)
	for range 600 { // a lease row each, all with the same deadline
		b.one()
	}
	b.now += 10 * 60_000
	for steps := 0; ; steps++ {
		if next := b.m.NextDue(); next == 0 || next > b.now {
			if steps < 3 {
				t.Errorf("it was done in %d steps", steps)
			}
			return
		}
		b.entry(machine.Tick())
		b.check()
	}
}
