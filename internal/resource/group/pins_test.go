package group

import (
	"testing"

	"github.com/keyload/keyload/api"
)

func TestAPurgeGoesUpToTheLowestCheckpointAndNotOneFurther(t *testing.T) {
	b := newBed(t, api.GroupPolicy{MaxAttempts: 1, OnExhausted: api.ExhaustedHold})
	b.create("other", api.GroupDefinition{})
	b.fill(10)
	b.finish("other", api.ActionAck, b.of("other", 8).Deliveries...)
	d := b.receive(8).Deliveries
	b.ack(d[0], d[1], d[2], d[4], d[5], d[6]) // 4 is unfinished: the run after it releases nothing
	for through, want := range map[uint64]string{4: "ResourceExhausted/retention_pin", 5: "ResourceExhausted/retention_pin", 8: "ResourceExhausted/retention_pin"} {
		before := b.rows()
		err := b.purge(through)
		wants(t, "a purge above a checkpoint", err, want)
		if f := facts(err); f["holder"] != "g" || f["checkpoint"] != "3" || f["heldEvents"] != "7" {
			t.Errorf("facts %v", f)
		}
		b.same("a refused purge", before)
	}
	b.must(b.purge(2))
	b.must(b.purge(3))
	b.nack(d[3], 0) // held
	b.pause()
	b.later(365 * 86_400_000)
	wants(t, "a purge above a paused group's held position", b.purge(4), "ResourceExhausted/retention_pin")
	b.must(b.skip(4))
	b.must(b.purge(7))
	wants(t, "a purge above the checkpoint", b.purge(8), "ResourceExhausted/retention_pin")
	b.must(b.skip(8)) // its lease was lost and it is held too
	b.must(b.purge(8))
	wants(t, "a purge above both checkpoints", b.purge(9), "ResourceExhausted/retention_pin")
}

func TestAPinMovesWithSeekAndEndsWithTheGroup(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.fill(10)
	b.ack(b.receive(10).Deliveries...)
	b.must(b.purge(2))
	b.seek(4) // back: what the source remembers of pins must not be believed any more
	wants(t, "a purge of what is to be delivered again", b.purge(4), "ResourceExhausted/retention_pin")
	b.must(b.purge(3))
	b.seek(9)
	b.must(b.purge(8))
	wants(t, "a purge above the new place", b.purge(9), "ResourceExhausted/retention_pin")
	b.create("late", api.GroupDefinition{}) // pins from the first retained event on
	b.must(b.delete("g", 8))
	wants(t, "a purge above the new group's place", b.purge(9), "ResourceExhausted/retention_pin")
	b.must(b.delete("late", 8))
	b.must(b.purge(10))
}

func TestTrimAndAgeStopAtAnUnfinishedPosition(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	b.resource("news", api.KindTopic, func(r *api.Resource) {
		p := *r.Source
		p.MaxEvents, p.OnFull, p.MaxAgeSeconds = 5, api.OnFullTrim, 60
		r.Source = &p
	})
	b.fill(5)
	d := b.receive(5).Deliveries
	b.ack(d[0], d[2])
	b.fill(1) // trims 1
	err := b.commit(api.Mutation{Publish: &api.Publish{Topic: "news", Events: []api.Event{event("a")}}})
	wants(t, "a publish for which an unfinished event would go", err, "ResourceExhausted/retention_pin")
	b.later(3_600_000)
	if s := b.status(); s.State.Checkpoint != 1 || s.State.Tail != 6 {
		t.Errorf("%+v", s.State)
	}
	r := b.receive(10)
	if len(r.Deliveries) != 4 { // 2 and 4 to 6 are there still, however old
		t.Errorf("received %v", positions(r))
	}
	b.ack(r.Deliveries...)
	b.later(120_000)
	b.check()
	b.fill(1)
}

func TestStatusSaysHowManyBytesAGroupHoldsBack(t *testing.T) {
	b := newBed(t, api.GroupPolicy{})
	if s := b.status(); s.PinnedBytes != 0 {
		t.Errorf("%d", s.PinnedBytes)
	}
	b.fill(4)
	all := b.status().PinnedBytes
	var last int64
	for p := range 4 {
		s := b.status()
		if s.PinnedBytes <= 0 || p > 0 && s.PinnedBytes >= last || s.Lag != uint64(4-p) {
			t.Errorf("at checkpoint %d: %d bytes, lag %d", p, s.PinnedBytes, s.Lag)
		}
		last = s.PinnedBytes
		b.ack(b.one())
	}
	if s := b.status(); s.PinnedBytes != 0 || s.Lag != 0 {
		t.Errorf("%d bytes", s.PinnedBytes)
	}
	b.must(b.purge(4))
	b.fill(1)
	r, err := ask(b, api.SubscriptionsList, &api.SubscriptionsListRequest{Source: b.news()})
	b.must(err)
	if len(r.Groups) != 1 || r.Groups[0].Lag != 1 || r.Groups[0].PinnedBytes != b.status().PinnedBytes || r.Groups[0].PinnedBytes >= all {
		t.Errorf("%+v", r.Groups)
	}
}
