package peer

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOutboxHoldsItsBoundsOfBytesAndParcels(t *testing.T) {
	parcelOf := func(n int) *parcel { return &parcel{body: make([]byte, n-1)} } // a parcel counts one byte more
	for _, c := range []struct {
		name    string
		queued  []int
		offered int
		fits    bool
	}{
		{"one byte below", []int{50}, 49, true},
		{"the last byte", []int{50}, 50, true},
		{"one byte above", []int{50}, 51, false},
		{"the last parcel", []int{1, 1}, 1, true},
		{"one parcel too many", []int{1, 1, 1}, 1, false},
		{"alone, whatever its size", nil, 1_000, true},
		{"after one that is too large", []int{1_000}, 1, false},
	} {
		o := newOutbox(100, 3)
		for _, n := range c.queued {
			if !o.offer(parcelOf(n)) {
				t.Fatalf("%s: a parcel before was refused", c.name)
			}
		}
		if got := o.offer(parcelOf(c.offered)); got != c.fits {
			t.Errorf("%s: taken is %v", c.name, got)
		}
	}
}

func TestWhatIsWithdrawnIsNotWrittenAndWhatWasTakenStays(t *testing.T) {
	o := newOutbox(1_000, 100)
	a, b, c := &parcel{id: 1}, &parcel{id: 2}, &parcel{id: 3}
	for _, p := range []*parcel{a, b, c} {
		if !o.offer(p) {
			t.Fatal("refused")
		}
	}
	if first, again := o.withdraw(b), o.withdraw(b); !first || !again {
		t.Error("a parcel that waits was not withdrawn")
	}
	got, more := o.take(nil, 1_000)
	if len(got) != 2 || got[0] != a || got[1] != c || more {
		t.Errorf("taken: %v, more is %v", got, more)
	}
	if o.withdraw(a) {
		t.Error("a parcel that may have been written was withdrawn")
	}
	if n, bytes := o.depth(); n != 0 || bytes != 0 {
		t.Errorf("%d parcels of %d bytes are left", n, bytes)
	}
	d := &parcel{id: 4}
	o.offer(d)
	o.close()
	if got, _ := o.take(nil, 1_000); len(got) != 0 || !o.withdraw(d) {
		t.Errorf("after close %d were taken", len(got))
	}
	if o.offer(&parcel{}) || o.put(context.Background(), &parcel{}) != errOutboxClosed {
		t.Error("a closed outbox takes parcels")
	}
}

func TestTakeStopsAtItsLimitAndALongQueueIsNotKept(t *testing.T) {
	o := newOutbox(1<<30, 1<<30)
	next := uint32(0)
	want := uint32(0)
	for range 1_000 { // never empty
		for range 10 {
			next++
			o.offer(&parcel{id: next, body: make([]byte, 9)})
		}
		got, more := o.take(nil, 95) // the tenth begins below the limit
		if len(got) != 10 || more != (next > want+10) {
			t.Fatalf("%d taken, more is %v", len(got), more)
		}
		for _, p := range got {
			if want++; p.id != want {
				t.Fatalf("parcel %d came, want %d", p.id, want)
			}
		}
		next++
		o.offer(&parcel{id: next, body: make([]byte, 9)})
		got, _ = o.take(nil, 1)
		if want++; len(got) != 1 || got[0].id != want {
			t.Fatalf("a limit of one: %d taken", len(got))
		}
		next++
		o.offer(&parcel{id: next, body: make([]byte, 9)})
		next++
		o.offer(&parcel{id: next, body: make([]byte, 9)})
		o.take(nil, 1)
		want++
		o.take(nil, 1)
		want++
	}
	if cap(o.queue) > 1_000 {
		t.Errorf("the queue has grown to %d", cap(o.queue))
	}
}

func TestPutWaitsForRoomUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(1_000, 1)
		o.offer(&parcel{id: 1})
		put := make(chan error, 1)
		go func() { put <- o.put(context.Background(), &parcel{id: 2}) }()
		synctest.Wait()
		if len(put) != 0 {
			t.Fatal("it was queued above the bound")
		}
		if got, _ := o.take(nil, 1); len(got) != 1 || <-put != nil {
			t.Error("room was not noticed")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := o.put(ctx, &parcel{id: 3}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		go func() { put <- o.put(context.Background(), &parcel{id: 4}) }()
		synctest.Wait()
		o.close()
		if err := <-put; err != errOutboxClosed {
			t.Errorf("at the close: %v", err)
		}
	})
}

func TestAnOutboxThatIsDownDropsWhatWaitsAndTakesNothing(t *testing.T) {
	o := newOutbox(1_000, 10)
	a := &parcel{}
	o.offer(a)
	o.offer(&parcel{})
	o.withdraw(a)
	if n := o.setDown(true); n != 1 {
		t.Errorf("%d dropped, want 1: the other was withdrawn before", n)
	}
	if o.offer(&parcel{}) {
		t.Error("it takes parcels")
	}
	o.setDown(false)
	if !o.offer(&parcel{}) {
		t.Error("it takes no parcels afterwards")
	}
}

func TestANameIsReadAsItIsWrittenAndNoOtherWay(t *testing.T) {
	for _, text := range []string{
		"keyload://cluster/a/node/1", "keyload://cluster/prod-2/node/18446744073709551615",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		n, err := parseName(u)
		if err != nil || n.URI().String() != text {
			t.Errorf("%s: %+v, %v", text, n, err)
		}
	}
	for _, text := range []string{
		"keyload://cluster/a/node/0", "keyload://cluster/a/node/01", "keyload://cluster/a/node/-1", "keyload://cluster/a/node/1/",
		"keyload://cluster/a/node/18446744073709551616", "keyload://other/a/node/1", "keyload://cluster/a/member/1", "keyload://cluster/a",
		"keyload://user@cluster/a/node/1", "keyload://cluster/a/node/1?x", "keyload://cluster/a/node/1#x", "keyload:cluster/a/node/1",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := parseName(u); err == nil {
			t.Errorf("%s is read as %s", text, n)
		}
	}
}
