package source

import (
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// facts fails the test unless a refusal says what it should.
func facts(t *testing.T, f *fault.Error, want map[string]string) {
	t.Helper()
	for name, v := range want {
		if f.Facts[name] != v {
			t.Errorf("%s is %q, want %q (%s)", name, f.Facts[name], v, f.Detail)
		}
	}
}

func TestAPurgeGoesUpToTheLowestPinAndNoFurther(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 10)...)
	b.must(err)
	b.pin(b.orders(), "slow", 5)
	b.pin(b.orders(), "fast", 9)
	b.pin(b.orders(), "also slow", 5)
	_, err = b.purge(4)
	b.must(err)
	_, err = b.purge(5)
	b.must(err)
	rows := b.rows()
	_, err = b.purge(6)
	f := wantCode(t, err, fault.ResourceExhausted, "retention_pin")
	facts(t, f, map[string]string{"holder": "also slow", "checkpoint": "5", "throughPosition": "6", "heldEvents": "5", "heldBytes": fmt.Sprint(b.head(b.orders()).Bytes())})
	if b.rows() != rows {
		t.Error("a refused purge changed something")
	}
	if cut, err := b.purge(3); err != nil || cut != 5 { // nothing is left to remove there
		t.Errorf("a purge below the cut: %d, %v", cut, err)
	}
	b.pin(b.orders(), "also slow", 7)
	_, err = b.purge(6)
	facts(t, wantCode(t, err, fault.ResourceExhausted, "retention_pin"), map[string]string{"holder": "slow", "checkpoint": "5"})
	b.pin(b.orders(), "slow", 10)
	_, err = b.purge(8)
	facts(t, wantCode(t, err, fault.ResourceExhausted, "retention_pin"), map[string]string{"holder": "also slow", "checkpoint": "7"})
	_, err = b.purge(7)
	b.must(err)
	b.unpin(b.orders(), "also slow")
	_, err = b.purge(9)
	b.must(err)
	b.unpin(b.orders(), "fast")
	_, err = b.purge(10)
	b.must(err)
	b.settle(3)
	b.check()
}

func TestAPinAtTheBeginningHoldsEverything(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	b.pin(b.orders(), "new", 0) // before there is any event
	_, err := b.publish(numbered(1, 3)...)
	b.must(err)
	_, err = b.purge(1)
	facts(t, wantCode(t, err, fault.ResourceExhausted, "retention_pin"), map[string]string{"holder": "new", "checkpoint": "0", "heldEvents": "3"})
	b.check()
}

func TestAPurgeOfOneBatchSeesThePinItsBatchMoved(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 3)...)
	b.must(err)
	b.pin(b.orders(), "g", 0)
	b.must(b.apply(func(c *op.Ctx) error {
		at := uint64(2)
		markers.Put(c.Tx, marker{b.orders(), "g"}, &at)
		_, err := Purge(c, b.topic, b.orders(), 2)
		return err
	}))
	b.check()
}

// A pin that appears or goes back below what the head remembers is asked for
// again, since its keeper says so.
func TestAPinThatGoesBackIsNotPassed(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 10)...)
	b.must(err)
	b.pin(b.orders(), "g", 9)
	_, err = b.purge(2)
	b.must(err)
	if h := b.head(b.orders()); h.PinFloor != 9 {
		t.Fatalf("the head remembers %d", h.PinFloor)
	}
	b.pin(b.orders(), "g", 4)
	_, err = b.purge(5)
	wantCode(t, err, fault.ResourceExhausted, "retention_pin")
	_, err = b.purge(3)
	b.must(err)
	b.pin(b.orders(), "another", 3)
	_, err = b.purge(4)
	facts(t, wantCode(t, err, fault.ResourceExhausted, "retention_pin"), map[string]string{"holder": "another"})
	b.check()
}

func TestRepinOfWhatIsNotRememberedWritesNothing(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	before := b.tx.Work()
	b.must(b.apply(func(c *op.Ctx) error { return Repin(c, b.orders()) })) // a source without events
	_, err := b.publish(numbered(1, 1)...)
	b.must(err)
	puts := b.tx.Work().Puts
	b.must(b.apply(func(c *op.Ctx) error { return Repin(c, b.orders()) }))
	if w := b.tx.Work(); w.Puts != puts || before.Puts+3 != puts || b.count(table.SourceHead) != 1 {
		t.Errorf("%d rows were written", w.Puts-before.Puts)
	}
}

func TestWhatAPinHoldsBackIsCountedInEventsAndBytes(t *testing.T) {
	b := newBed(t, api.SourcePolicy{})
	_, err := b.publish(numbered(1, 10)...)
	b.must(err)
	_, err = b.purge(4)
	b.must(err)
	h := b.head(b.orders())
	for _, c := range []struct{ at, events uint64 }{{0, 6}, {3, 6}, {4, 6}, {5, 5}, {9, 1}, {10, 0}, {11, 0}} {
		var events, bytes, want uint64
		b.must(b.view(func(v *op.View) (err error) {
			if events, bytes, err = Behind(&v.Scope, b.orders(), &h, c.at); err != nil {
				return err
			}
			return scanRows(&v.Scope, b.orders(), max(c.at, h.Cut)+1, h.Tail, false, func(_ uint64, key, value []byte) (bool, error) {
				want += uint64(len(key) + len(value))
				return true, nil
			})
		}))
		if events != c.events || bytes != want {
			t.Errorf("after %d: %d events, %d bytes; want %d, %d", c.at, events, bytes, c.events, want)
		}
	}
}
