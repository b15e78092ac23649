package directory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// A policy can ask for what is stored already: its kind's package is told of the
// change in every data shard and needs no traffic to go to work.
func TestAChangedPolicyReachesWhatIsStoredInEveryShardWithoutTraffic(t *testing.T) {
	n := newNode(t)
	aging := func(seconds int64, expected uint64) {
		t.Helper()
		_, err := n.configure(api.ResourcesConfigureRequest{
			Name: "log", Kind: api.KindTopic, Source: &api.SourcePolicy{MaxAgeSeconds: seconds}, ExpectedVersion: expected,
		})
		n.must(err)
		for n.tick() {
		}
	}
	first := func(part int) uint64 {
		t.Helper()
		_, err := call(n, api.EventsRead, api.EventsReadRequest{Source: api.SourceRef{Partition: at(fmt.Sprint("part", part)), Resource: "log", Kind: api.SourceTopic}})
		if err == nil {
			return 1
		}
		f := fault.From(err)
		if f == nil || f.Code != fault.HistoryUnavailable {
			t.Fatal(err)
		}
		var position uint64
		_, err = fmt.Sscan(f.Facts["firstAvailable"], &position)
		n.must(err)
		return position
	}
	const parts = 12
	n.make("log", api.KindTopic)
	n.fill("log", api.KindTopic, parts, 3)
	n.now = n.now.Add(time.Minute)
	n.fill("log", api.KindTopic, parts, 2)
	n.now = n.now.Add(time.Minute)
	for step, c := range []struct {
		age   int64
		first uint64
	}{{200, 1}, {121, 1}, {120, 4}, {300, 4}, {61, 4}, {60, 6}} {
		aging(c.age, uint64(step)+1)
		for part := range parts {
			if got := first(part); got != c.first {
				t.Errorf("with an age of %d s partition %d begins at %d, want %d", c.age, part, got, c.first)
			}
		}
	}
}
