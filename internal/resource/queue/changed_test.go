package queue

import (
	"fmt"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/table"
)

func TestAQueueThatMayDeliverMoreOrNoMoreWakesTheReceivesOfAllItsLanes(t *testing.T) {
	b := newBed(t, api.QueuePolicy{MaxInFlightMessages: 10, MaxInFlightBytes: 3 << 20})
	base := *b.queues["work"]
	base.Paused = false
	for _, c := range []struct {
		what      string
		was, edit func(r *api.Resource)
		wakes     bool
	}{
		{"nothing", nil, nil, false},
		{"more messages", nil, func(r *api.Resource) { r.Queue.MaxInFlightMessages++ }, true},
		{"fewer messages", nil, func(r *api.Resource) { r.Queue.MaxInFlightMessages-- }, false},
		{"more bytes", nil, func(r *api.Resource) { r.Queue.MaxInFlightBytes++ }, true},
		{"fewer bytes", nil, func(r *api.Resource) { r.Queue.MaxInFlightBytes-- }, false},
		{"more attempts", nil, func(r *api.Resource) { r.Queue.MaxAttempts++ }, false},
		{"a pause", nil, func(r *api.Resource) { r.Paused = true }, true},
		{"a pause that goes on", func(r *api.Resource) { r.Paused = true }, func(r *api.Resource) { r.Paused = true }, false},
		{"the end of a pause", func(r *api.Resource) { r.Paused = true }, nil, true},
	} {
		install := func(c *op.Ctx, edit func(r *api.Resource)) error {
			r, p := base, *base.Queue
			if r.Queue = &p; edit != nil {
				edit(&r)
			}
			return directory.Install(c, table.EncodeCBOR(nil, &r))
		}
		var hints []op.Hint
		b.write(func(x *op.Ctx) error { return install(x, c.was) })
		b.write(func(x *op.Ctx) error {
			err := install(x, c.edit)
			hints = x.Hints()
			return err
		})
		want := "[]"
		if c.wakes {
			want = fmt.Sprint([]op.Hint{{Key: queueKey(b.owner()), Count: everyone}})
		}
		if got := fmt.Sprint(hints); got != want {
			t.Errorf("%s: the hints are %s, want %s", c.what, got, want)
		}
	}
}

func TestAChangeOfAQueueIsHeardInAllItsLanesOfAShardAndNowhereElse(t *testing.T) {
	lane := func(shard uint16, partition string, queue uint32) table.Owner {
		at := api.PartitionRef{Tenant: "default", Database: "main", Domain: "main", Key: partition}
		return table.Owner{Space: table.Space{Shard: shard, Partition: partitions.Hash(at)}, Resource: queue}
	}
	key := queueKey(lane(1, "a", 2))
	if queueKey(lane(1, "b", 2)) != key {
		t.Errorf("another lane does not hear of it")
	}
	for what, other := range map[string]string{
		"another shard": queueKey(lane(2, "a", 2)), "another queue": queueKey(lane(1, "a", 3)), "a lane": wakeKey(lane(1, "a", 2)),
		"the lane of the shard's own partition": wakeKey(table.Owner{Space: table.Space{Shard: 1}, Resource: 2}),
	} {
		if other == key {
			t.Errorf("%s has the same key", what)
		}
	}
}
