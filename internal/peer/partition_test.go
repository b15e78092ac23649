package peer_test

import (
	"testing"
	"time"

	"github.com/keyload/keyload/internal/peer"
)

func impatient(o *peer.Options) {
	o.Times.PingEvery, o.Times.IdleAfter, o.Times.DialTime = 20*time.Millisecond, time.Second, time.Second
}

func TestAConnectionThatCarriesOneWayOnlyIsGivenUpByBothSides(t *testing.T) {
	t.Parallel()
	for _, cut := range [][2]string{{"node1", "node2"}, {"node2", "node1"}} {
		b := newBed(t)
		one, two := b.pair(impatient)
		talks(t, one, two)
		talks(t, two, one)
		b.network.Cut(cut[0], cut[1])
		one.told(t, 2)
		two.told(t, 1)
		until(t, "neither counts as connected", func() bool {
			return !one.Status()[0].Connected && !two.Status()[0].Connected
		})
		b.network.Mend(cut[0], cut[1])
		talks(t, one, two)
		talks(t, two, one)
	}
}

func TestAPartitionedNodeIsFoundUnreachableAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one, two := b.pair(impatient)
	three := b.start(3, impatient)
	for _, m := range []*member{one, two} {
		m.Set(3, three.Addr())
		three.Set(m.node, m.Addr())
	}
	talks(t, one, three)
	talks(t, two, three)
	for _, other := range []string{"node1", "node2"} {
		b.network.Cut("node3", other)
		b.network.Cut(other, "node3")
	}
	one.told(t, 3)
	two.told(t, 3)
	talks(t, one, two)
	talks(t, two, one)
	for _, other := range []string{"node1", "node2"} {
		b.network.Mend("node3", other)
		b.network.Mend(other, "node3")
	}
	talks(t, one, three)
	talks(t, three, two)
}

func TestAQuietConnectionStays(t *testing.T) {
	t.Parallel()
	one, two := newBed(t).pair(impatient)
	talks(t, one, two)
	began := time.Now()
	until(t, "three times the idle time is over", func() bool { return time.Since(began) > 3*time.Second })
	if one.log.holds("a connection was lost") {
		t.Errorf("a connection was lost:\n%s", one.log.text())
	}
}

func TestALateNetworkCarriesEverything(t *testing.T) {
	b := newBed(t)
	one, two := b.pair(nil)
	b.network.Delay("node1", "node2", 20*time.Millisecond)
	talks(t, one, two)
	for i := range 200 {
		one.Send(2, 9, []byte{byte(i)})
	}
	for i := range 200 {
		m := two.next(t)
		for m.shard == 7 {
			m = two.next(t)
		}
		if m.body != string([]byte{byte(i)}) {
			t.Fatalf("message %d is %q", i, m.body)
		}
	}
}
