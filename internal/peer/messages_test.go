package peer_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/keyload/keyload/internal/peer"
)

func TestMessagesArriveInTheirOrderWithTheirShardAndSender(t *testing.T) {
	one, two := newBed(t).pair(nil)
	talks(t, one, two)
	const messages = 5_000
	for i := range messages {
		one.Send(2, uint16(i), fmt.Appendf(nil, "message %d", i))
	}
	for i := range messages {
		m := two.next(t)
		for m.body == "are you there" {
			m = two.next(t)
		}
		if want := (message{1, uint16(i), fmt.Sprint("message ", i)}); m != want {
			t.Fatalf("got %+v, want %+v", m, want)
		}
	}
	two.Send(1, 65_535, nil)
	if m := one.next(t); m != (message{2, 65_535, ""}) {
		t.Errorf("the other way: %+v", m)
	}
}

func TestAMessageMayHaveUpToItsBoundOfBytes(t *testing.T) {
	const bound = 300_000 // more than one record of TLS
	one, two := newBed(t).pair(func(o *peer.Options) { o.Bounds.MessageBytes = bound })
	talks(t, one, two)
	for _, size := range []int{bound - 1, bound, bound + 1} {
		sent := bytes.Repeat([]byte{byte(size)}, size)
		one.Send(2, 1, sent)
		if size > bound {
			one.told(t, 2)
			if !one.log.holds("too large") {
				t.Error("the log does not say why the message was dropped")
			}
			continue
		}
		m := two.next(t)
		for m.shard == 7 {
			m = two.next(t)
		}
		if m.body != string(sent) {
			t.Errorf("%d bytes came as %d", size, len(m.body))
		}
	}
}

func TestAFrameAboveTheBoundEndsTheConnectionOfWhoSendsIt(t *testing.T) {
	b := newBed(t)
	one := b.start(1, func(o *peer.Options) { o.Bounds.MessageBytes, o.Bounds.CallBytes = 2_000_000, 1_000 })
	two := b.start(2, func(o *peer.Options) { o.Bounds.MessageBytes, o.Bounds.CallBytes = 1_000_000, 1_000 })
	one.Set(2, two.Addr())
	talks(t, one, two)
	one.Send(2, 1, make([]byte, 1_000_001))
	until(t, "the connection is lost", func() bool { return one.log.holds("a connection was lost") })
	talks(t, one, two) // and made again
	for len(two.messages) > 0 {
		if m := two.next(t); m.shard == 1 {
			t.Errorf("a message of %d bytes was taken", len(m.body))
		}
	}
}

func TestTheQueueHoldsItsBoundAndSendingNeverBlocks(t *testing.T) {
	b := newBed(t)
	one := b.start(1, func(o *peer.Options) {
		o.Bounds.MessageBytes, o.Bounds.QueueMessages, o.Times.DialTime = 1_000, 10, time.Minute
	})
	two := b.start(2, nil)
	b.network.Cut("node1", "node2") // the attempt to connect hangs, and what is sent waits
	one.Set(2, two.Addr())
	waits := func() int { return one.Status()[0].Waiting }
	for i := range 10 {
		one.Send(2, 1, []byte{byte(i)})
	}
	if waits() != 10 || len(one.unreachable) != 0 {
		t.Fatalf("%d messages wait, %d were complained of", waits(), len(one.unreachable))
	}
	one.Send(2, 1, []byte{10})
	one.told(t, 2)
	if s := one.Status()[0]; s.Waiting != 10 || s.Dropped != 1 || s.Connected {
		t.Errorf("status is %+v", s)
	}
	b.network.Mend("node1", "node2")
	for i := range 10 {
		if m := two.next(t); m.body != string([]byte{byte(i)}) {
			t.Fatalf("message %d is %q", i, m.body)
		}
	}
}

func TestAReceiverThatReadsSlowlyMakesItsOwnMessagesDropAndNobodyElses(t *testing.T) {
	b := newBed(t)
	one := b.start(1, func(o *peer.Options) { o.Bounds.MessageBytes, o.Bounds.QueueBytes = 1<<20, 2<<20 })
	slow, quick := b.start(2, nil), b.start(3, nil)
	reads := make(chan struct{})
	slow.hold.Store(&reads)
	t.Cleanup(func() { close(reads) })
	one.Set(2, slow.Addr())
	one.Set(3, quick.Addr())
	until(t, "messages to the slow node are dropped", func() bool {
		one.Send(2, 1, make([]byte, 1<<20))
		return one.Status()[0].Dropped > 0 && one.Status()[0].Connected
	})
	one.told(t, 2)
	talks(t, one, quick)
	if s := one.Status(); s[1].Dropped > 0 && !s[1].Connected {
		t.Errorf("the quick node suffers: %+v", s)
	}
	// Slow is not dead: it pings, so its connection stays.
	if one.log.holds("a connection was lost") {
		t.Errorf("the connection to the slow node was lost:\n%s", one.log.text())
	}
}

func TestANodeThatStartsAgainIsReachedAgainAtItsNewAddress(t *testing.T) {
	b := newBed(t)
	one, two := b.pair(nil)
	talks(t, one, two)
	talks(t, two, one)
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	one.told(t, 2)
	again := b.start(2, nil) // at another port
	again.Set(1, one.Addr())
	talks(t, again, one)
	talks(t, one, again) // it learned the address from the greeting
	if s := one.Status(); len(s) != 1 || s[0].Address != again.Addr() {
		t.Errorf("status is %+v", s)
	}
	one.Set(2, two.Addr()) // said before, so not news
	talks(t, one, again)
}

func TestMessagesToNobodyAreReportedLost(t *testing.T) {
	one := newBed(t).start(1, nil)
	one.Send(5, 1, []byte("x"))
	one.told(t, 5)
	one.Set(6, "127.0.0.1:1") // nothing listens there
	until(t, "messages to it are dropped", func() bool {
		one.Send(6, 1, []byte("x"))
		return one.Status()[0].Dropped > 0
	})
	one.told(t, 6)
	until(t, "the log says why", func() bool { return one.log.holds("cannot connect to a node") })
}

func TestARemovedNodeIsCutOffAndStaysOut(t *testing.T) {
	one, two := newBed(t).pair(nil)
	talks(t, one, two)
	talks(t, two, one)
	one.Remove(2)
	two.told(t, 1)
	until(t, "node 2 is told why", func() bool { return two.log.holds("removed from the cluster") })
	one.Set(2, "127.0.0.1:2")
	if s := one.Status()[0]; !s.Removed || s.Connected {
		t.Errorf("status is %+v", s)
	}
	if _, err := one.Call(t.Context(), 2, 1, nil); !is(err, peer.ErrNotSent) {
		t.Errorf("a call to it: %v", err)
	}
	if _, err := two.Call(t.Context(), 1, 1, nil); !is(err, peer.ErrNotSent) {
		t.Errorf("a call of it: %v", err)
	}
	one.Send(2, 1, []byte("x"))
	one.told(t, 2)
}
