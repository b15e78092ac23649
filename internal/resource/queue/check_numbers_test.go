package queue

import (
	"fmt"
	"math"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
)

// The finished rows are as the messages say, so the head is what is wrong: to number
// them by it would take away what tells of that.
func TestAHeadThatNumbersFinishedRowsOtherwiseIsFoundAndTheRowsAreLeft(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for i := range 3 {
		b.enqueue(msg(fmt.Sprint("m", i)))
		b.ack(b.one())
	}
	number := func(n uint64) {
		b.write(func(c *op.Ctx) error {
			h, _, err := heads.Get(c.Tx, b.owner())
			h.FinishedSeq = n
			heads.Put(c.Tx, b.owner(), &h)
			return err
		})
	}
	for _, n := range []uint64{0, 1, 2, 3, 4, 1 << 40, math.MaxInt64, math.MaxUint64} {
		number(n)
		found := b.audit(0).Findings
		if (len(found) == 0) != (n == 3) {
			t.Errorf("with number %d: %+v", n, found)
		}
		for _, f := range found {
			if f.Derived {
				t.Errorf("with number %d the rows would be made anew: %+v", n, f)
			}
		}
	}
	number(3)
}

func TestAHeadCountsTheFinishedRowsThatWerePruned(t *testing.T) {
	b := newBed(t, api.QueuePolicy{})
	for i := range 2 {
		b.enqueue(msg(fmt.Sprint("m", i)))
	}
	b.ack(b.receive(2).Deliveries...)
	b.later(400 * 86_400_000) // none is left
	if counts := b.check(); counts["messages"] != 0 {
		t.Fatalf("%+v", counts)
	}
	for n, sound := range map[uint64]bool{0: false, 1: true, 2: true, 3: false} { // of two messages
		b.write(func(c *op.Ctx) error {
			h, _, err := heads.Get(c.Tx, b.owner())
			h.FinishedSeq = n
			heads.Put(c.Tx, b.owner(), &h)
			return err
		})
		if found := b.audit(0).Findings; (len(found) == 0) != sound {
			t.Errorf("with number %d: %+v", n, found)
		}
	}
	b.write(func(c *op.Ctx) error {
		h, _, err := heads.Get(c.Tx, b.owner())
		h.FinishedSeq = 1
		heads.Put(c.Tx, b.owner(), &h)
		return err
	})
}
