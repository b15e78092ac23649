package wake

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func (w *Waiter) woken() bool {
	select {
	case <-w.C:
		return true
	default:
		return false
	}
}

// mustBe checks which of the waiters are woken, and takes their wake-ups.
func mustBe(t *testing.T, what string, ws []*Waiter, want ...bool) {
	t.Helper()
	for i, w := range ws {
		if got := w.woken(); got != want[i] {
			t.Errorf("%s: waiter %d woken: %v, want %v", what, i, got, want[i])
		}
	}
}

// line makes n waiters of one class.
func line(h *Hub, n int, class string, keys ...string) []*Waiter {
	ws := make([]*Waiter, n)
	for i := range ws {
		ws[i] = h.Wait(class, keys...)
	}
	return ws
}

func TestTheLongestWaitingIsWokenFirst(t *testing.T) {
	h := NewHub()
	ws := line(h, 3, "c", "k")
	h.Wake("k", 1)
	mustBe(t, "one hint", ws, true, false, false)
	h.Wake("k", 1)
	mustBe(t, "another", ws, false, true, false)
	h.Wake("k", 2)
	mustBe(t, "a hint for two", ws, true, false, true)
}

func TestAsManyAreWokenAsCanBeServed(t *testing.T) {
	for n := 0; n <= 5; n++ {
		h := NewHub()
		ws := line(h, 4, "c", "k")
		h.Wake("k", n)
		mustBe(t, fmt.Sprint(n), ws, n > 0, n > 1, n > 2, n > 3)
	}
}

func TestAHintPassesOverTheOnesAboutToLook(t *testing.T) {
	h := NewHub()
	ws := line(h, 3, "c", "k")
	h.Wake("k", 1) // the first, which has not looked yet
	h.Wake("k", 1)
	mustBe(t, "two hints", ws, true, true, false)
}

// The order a hint leaves behind must serve everyone in turn, also when it
// passed over somebody.
func TestRepeatedHintsReachEveryoneInTurn(t *testing.T) {
	h := NewHub()
	ws := line(h, 3, "c", "k")
	counts := make([]int, 3)
	for range 9 {
		h.Wake("k", 1)
		for i, w := range ws {
			if w.woken() {
				counts[i]++
			}
		}
	}
	if counts[0] != 3 || counts[1] != 3 || counts[2] != 3 {
		t.Errorf("nine hints for three waiters came to %v", counts)
	}
}

func TestNothingIsWokenForAnotherKey(t *testing.T) {
	h := NewHub()
	ws := line(h, 1, "c", "k")
	h.Wake("other", 5)
	mustBe(t, "another key", ws, false)
	if h.Waiting("k") != 1 || h.Waiting("other") != 0 {
		t.Error("the counts are wrong")
	}
}

func TestAHintBetweenRegisteringAndWaitingIsNotLost(t *testing.T) {
	h := NewHub()
	w := h.Wait("c", "k")
	h.Wake("k", 1)
	<-w.C
}

func TestAWaiterForSeveralKeysIsWokenByAny(t *testing.T) {
	h := NewHub()
	w := h.Wait("c", "a", "b")
	for _, k := range []string{"a", "b"} {
		h.Wake(k, 1)
		if !w.woken() {
			t.Errorf("the hint for %s was lost", k)
		}
	}
	w.Done(false)
	if h.Waiting("a")+h.Waiting("b") != 0 {
		t.Error("it still waits")
	}
}

func TestDoneHandsAnUnusedWakeUpOn(t *testing.T) {
	h := NewHub()
	ws := line(h, 2, "c", "k")
	h.Wake("k", 1)
	ws[0].Done(false)
	mustBe(t, "handed on", ws[1:], true)
	ws[1].Done(false)
	if h.Waiting("k") != 0 {
		t.Error("somebody still waits")
	}
}

func TestDoneHandsNothingOnWhenTheWakeUpWasUsed(t *testing.T) {
	h := NewHub()
	ws := line(h, 2, "c", "k")
	h.Wake("k", 1)
	<-ws[0].C
	ws[0].Done(false)
	mustBe(t, "used", ws[1:], false)
}

func TestDoneHandsAWakeUpOnThatCameToNothing(t *testing.T) {
	h := NewHub()
	ws := line(h, 4, "c", "a", "b")
	other := line(h, 1, "d", "a")
	reader := line(h, 1, "", "a")
	h.Wake("b", 1)
	<-ws[0].C
	ws[0].Done(true)
	mustBe(t, "one was woken, one takes its place", ws[1:], true, false, false)
	h.Wake("b", 2)
	<-ws[2].C
	h.Wake("b", 1) // passes over the last; the third is woken again
	ws[2].Done(true)
	mustBe(t, "two go on, one of them finds nobody who is not woken", []*Waiter{ws[1], ws[3]}, true, true)
	mustBe(t, "other classes", append(other, reader...), false, false)
}

func TestAsManyOfEachClassAreWokenAndAllWithoutAClass(t *testing.T) {
	for n := range 4 {
		h := NewHub()
		a, b, none := line(h, 3, "a", "k", "a"), line(h, 2, "b", "k", "b"), line(h, 3, "", "k")
		h.Wake("k", n)
		mustBe(t, fmt.Sprint("a ", n), a, n > 0, n > 1, n > 2)
		mustBe(t, fmt.Sprint("b ", n), b, n > 0, n > 1)
		mustBe(t, fmt.Sprint("none ", n), none, n > 0, n > 0, n > 0)
		h.Wake("b", 1)
		mustBe(t, fmt.Sprint("a after b ", n), a, false, false, false)
		if got := h.Waiting("k"); got != 8 {
			t.Errorf("%d wait", got)
		}
	}
}

func TestAWokenCallWithoutAClassHandsNothingOn(t *testing.T) {
	h := NewHub()
	ws := line(h, 2, "", "k")
	h.Wake("k", 1)
	<-ws[1].C
	ws[0].Done(true)
	mustBe(t, "the other", ws[1:], false)
}

func TestAnEmptyHubHoldsNothing(t *testing.T) {
	h := NewHub()
	for i := range 100 {
		w := h.Wait(fmt.Sprint(i%3), fmt.Sprint(i), fmt.Sprint(i+1))
		h.Wake(fmt.Sprint(i), 3)
		w.Done(false)
	}
	if len(h.waiting) != 0 {
		t.Errorf("%d keys are left", len(h.waiting))
	}
}

// Workers take items that producers put down, in the way long polls do: register
// before looking, wait, look again. If a wake-up were lost while items are left,
// the last of them would be left for good and the test would not end.
func TestNoWakeUpIsLostAmongManyTakersAndProducers(t *testing.T) {
	const producers, takers, each = 4, 8, 500
	h := NewHub()
	var left, taken atomic.Int64
	take := func() bool {
		for n := left.Load(); n > 0; n = left.Load() {
			if left.CompareAndSwap(n, n-1) {
				return true
			}
		}
		return false
	}
	end := make(chan struct{})
	var working, producing sync.WaitGroup
	for i := range takers {
		working.Go(func() {
			w := h.Wait("takers", "items")
			defer func() { w.Done(false) }()
			for {
				if take() {
					if taken.Add(1) == producers*each {
						close(end)
					}
					if i%2 == 0 { // some come back for every item, as callers do
						w.Done(false)
						w = h.Wait("takers", "items")
					}
					continue
				}
				select {
				case <-w.C:
				case <-end:
					return
				}
			}
		})
	}
	for range producers {
		producing.Go(func() {
			for range each {
				left.Add(1)
				h.Wake("items", 1)
			}
		})
	}
	producing.Wait()
	working.Wait()
	if left.Load() != 0 || h.Waiting("items") != 0 {
		t.Errorf("%d items and %d waiters are left", left.Load(), h.Waiting("items"))
	}
}
