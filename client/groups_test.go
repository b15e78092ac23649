package client_test

import (
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// A group is followed through its life over the wire, by every call there is.
func TestEveryCallOnGroupsReachesTheServer(t *testing.T) {
	b := newBed(t)
	c, ctx := b.client(b.server.URL()), t.Context()
	_, err := c.Commit(ctx, home, client.Publish("news", client.Event("Added", 1), client.Event("Added", 2), client.Event("Added", 3), client.Event("Added", 4), client.Event("Added", 5)))
	check(t, err)
	g := client.Group(client.Topic(home, "news"), "audit")
	made, err := c.ConfigureGroup(ctx, &api.SubscriptionsConfigureRequest{Group: g})
	check(t, err)
	generation := made.State.Generation
	r, err := c.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: g, MaxEvents: 3})
	check(t, err)
	if len(r.Deliveries) != 3 {
		t.Fatalf("%d deliveries (%s)", len(r.Deliveries), r.Reason)
	}
	done, err := c.CompleteEvents(ctx, g, api.CompleteItem{Token: r.Deliveries[0].Token, Action: api.ActionAck}, api.CompleteItem{Token: r.Deliveries[1].Token, Action: api.ActionNack, Terminal: true})
	check(t, err)
	if done.Checkpoint != 2 || done.Results[1].State != api.PositionDead {
		t.Errorf("checkpoint %d, %+v", done.Checkpoint, done.Results)
	}
	p, err := c.ProcessEvent(ctx, &api.SubscriptionsProcessRequest{
		Group: g, Token: r.Deliveries[2].Token, HandlerScope: "audit", Effects: []api.Mutation{put("seen", map[string]int{"n": 3})},
	})
	check(t, err)
	if p.Checkpoint != 3 || p.AlreadyProcessed {
		t.Errorf("%+v", p)
	}
	x, err := c.ExplainPosition(ctx, g, 4)
	check(t, err)
	if !x.Deliverable || x.State != api.PositionPending {
		t.Errorf("position 4: %+v", x)
	}
	_, err = c.SkipPosition(ctx, &api.SubscriptionsSkipRequest{Group: g, ExpectedGeneration: generation, Position: 4, Reason: "not for us"})
	check(t, err)
	_, err = c.PauseGroup(ctx, g, generation)
	check(t, err)
	_, err = c.SeekGroup(ctx, &api.SubscriptionsSeekRequest{Group: g, ExpectedGeneration: generation, To: api.SeekPosition, Position: 5})
	check(t, err)
	_, err = c.ResumeGroup(ctx, g, generation+1)
	check(t, err)
	s, err := c.GroupStatus(ctx, g, 0)
	check(t, err)
	if s.State.Checkpoint != 4 || s.Lag != 1 || s.Counts.DeadLetters != 1 || len(s.Skipped) != 1 {
		t.Errorf("status %+v", s)
	}
	for d, err := range c.DeadEvents(ctx, g) {
		check(t, err)
		if d.Position != 2 || d.Event == nil || d.Event.Type != "Added" {
			t.Errorf("dead letter %+v", d)
		}
	}
	_, err = c.RedriveEvent(ctx, &api.SubscriptionsDeadLettersRedriveRequest{Group: g, Position: 2})
	check(t, err)
	r, err = c.ReceiveEvents(ctx, &api.SubscriptionsReceiveRequest{Group: g, MaxEvents: 1})
	check(t, err)
	if len(r.Deliveries) != 1 || !r.Deliveries[0].Redriven || r.Deliveries[0].Event.Position != 2 {
		t.Fatalf("redriven: %+v", r)
	}
	_, err = c.CompleteEvents(ctx, g, api.CompleteItem{Token: r.Deliveries[0].Token, Action: api.ActionNack, Terminal: true})
	check(t, err)
	_, err = c.DiscardEvent(ctx, &api.SubscriptionsDeadLettersDiscardRequest{Group: g, Position: 2})
	check(t, err)
	names := ""
	for info, err := range c.GroupsOf(ctx, g.Source) {
		check(t, err)
		names += info.Group
	}
	if names != "audit" {
		t.Errorf("groups %q", names)
	}
	_, err = c.DeleteGroup(ctx, g, 4)
	check(t, err)
}
