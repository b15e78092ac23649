package queue

import (
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/machine"
)

func TestALaneWhoseDueWorkIsHalfDoneIsSound(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightMessages: 10_000})
	for i := range 600 {
		b.enqueue(msg(fmt.Sprintf("m%04d", i)))
	}
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
