package work

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

func ownGroup(n int) api.GroupRef {
	return api.GroupRef{Source: api.SourceRef{Partition: ownPartition(n), Resource: "own"}, Group: "mine"}
}

// follower is a caller at work on its own group and topic.
type follower struct{ *caller }

// act does one thing.
func (c follower) act() {
	g := ownGroup(c.number)
	if c.group == nil {
		if r := send(c.caller, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{Group: g}); r != nil {
			c.group = &r.State
		}
		return
	}
	switch n := c.rng.IntN(100); {
	case n < 35:
		c.publish()
	case n < 65:
		c.claim()
	case n < 75:
		c.decideDead()
	case n < 90:
		c.move()
	case n < 96:
		c.purge()
	default:
		c.remove()
	}
}

// remove deletes the group. Its checkpoint has to be asked for: a receive moves it
// over what the filter passes over and does not say so. Between the two a lease may
// end for the last time and move it again.
func (c follower) remove() {
	g := ownGroup(c.number)
	st, err := c.GroupStatus(c.ctx, g, 1)
	if err == nil && send(c.caller, api.SubscriptionsDelete, &api.SubscriptionsDeleteRequest{Group: g, Confirm: &st.State.Checkpoint}, fault.RevisionConflict) != nil {
		c.group = nil
	}
}

func (c follower) publish() {
	var es []api.Event
	for range 1 + c.rng.IntN(4) {
		es = append(es, api.Event{EventID: c.name("e"), Type: []string{"a", "b"}[c.rng.IntN(2)], Payload: api.JSON("1")})
	}
	if r := c.commit(client.Publish("own", es...)); r != nil {
		c.tail = r.Results[0].Position
	}
}

// claim claims some events and finishes each in another way.
func (c follower) claim() {
	g := ownGroup(c.number)
	got := send(c.caller, api.SubscriptionsReceive, &api.SubscriptionsReceiveRequest{Group: g, MaxEvents: 4, LeaseSeconds: 5})
	if got == nil {
		return
	}
	req := &api.SubscriptionsCompleteRequest{Group: g}
	skip := uint64(0)
	for _, d := range got.Deliveries {
		i := api.CompleteItem{Token: d.Token, Action: api.ActionAck}
		switch c.rng.IntN(6) {
		case 0:
			i.Action, i.Terminal = api.ActionNack, true
		case 1:
			i.Action = api.ActionRelease
		case 2:
			if !d.Redriven { // a dead letter is not skipped
				skip = d.Event.Position
				continue
			}
		}
		req.Items = append(req.Items, i)
	}
	if len(req.Items) > 0 {
		if r := send(c.caller, api.SubscriptionsComplete, req); r != nil {
			c.group.Checkpoint = r.Checkpoint
		}
	}
	if skip > 0 {
		r := send(c.caller, api.SubscriptionsSkip, &api.SubscriptionsSkipRequest{Group: g, ExpectedGeneration: c.group.Generation, Position: skip, Reason: "nobody can take it"})
		if r != nil {
			c.group = &r.State
		}
	}
}

// decideDead redrives or discards a dead letter.
func (c follower) decideDead() {
	g := ownGroup(c.number)
	list, err := api.Call(c.ctx, c.doer, api.SubscriptionsDeadLettersList, &api.SubscriptionsDeadLettersListRequest{Group: g, WithoutEvents: true})
	if err != nil || len(list.DeadLetters) == 0 {
		return
	}
	p := list.DeadLetters[c.rng.IntN(len(list.DeadLetters))].Position
	if c.chance(50) {
		send(c.caller, api.SubscriptionsDeadLettersDiscard, &api.SubscriptionsDeadLettersDiscardRequest{Group: g, Position: p}, fault.Conflict)
	} else {
		send(c.caller, api.SubscriptionsDeadLettersRedrive, &api.SubscriptionsDeadLettersRedriveRequest{Group: g, Position: p}, fault.Conflict)
	}
}

// move pauses the group, gives it another place or filter, and resumes it. A
// life may end between any two of these.
func (c follower) move() {
	g := ownGroup(c.number)
	if r := send(c.caller, api.SubscriptionsPause, &api.SubscriptionsPauseRequest{Group: g, ExpectedGeneration: c.group.Generation}); r != nil {
		c.group = &r.State
	}
	switch {
	case c.chance(50):
		to := []api.SeekTo{api.SeekBeginning, api.SeekNow}[c.rng.IntN(2)]
		if r := send(c.caller, api.SubscriptionsSeek, &api.SubscriptionsSeekRequest{Group: g, ExpectedGeneration: c.group.Generation, To: to}); r != nil {
			c.group = &r.State
		}
	default:
		def := api.GroupDefinition{Policy: api.GroupPolicy{MaxWindow: 1 + int64(c.rng.IntN(20))}}
		if c.chance(50) {
			def.Filter.EventTypes = []string{"a"}
		}
		if r := send(c.caller, api.SubscriptionsConfigure, &api.SubscriptionsConfigureRequest{Group: g, ExpectedGeneration: c.group.Generation, Definition: def}); r != nil {
			c.group = &r.State
		}
	}
	if r := send(c.caller, api.SubscriptionsResume, &api.SubscriptionsResumeRequest{Group: g, ExpectedGeneration: c.group.Generation}); r != nil {
		c.group = &r.State
	}
}

// purge cuts the topic where its group has been.
func (c follower) purge() {
	if at := min(c.group.Checkpoint, c.tail); at > 0 {
		c.commit(client.PurgeTopic("own", at))
	}
}

// learn asks for what is the caller's own: a life of the store may have ended
// before it was told.
func (c *caller) learn() {
	key := ownPartition(c.number).Key
	var err error
	if c.resource, err = c.GetResource(c.ctx, &api.ResourcesGetRequest{Name: "queue-" + key}); err != nil {
		c.resource = nil
	}
	if p, err := c.GetPrincipal(c.ctx, "default", "principal-"+key); err == nil {
		c.epoch = p.PolicyEpoch
	}
	keys, err := c.ListAPIKeys(c.ctx, &api.APIKeysListRequest{PrincipalID: "principal-" + key, Limit: 1000})
	if err == nil {
		for _, k := range keys.Keys {
			if !k.Revoked {
				c.keys = append(c.keys, k.KeyID)
			}
		}
	}
	if s, err := c.GroupStatus(c.ctx, ownGroup(c.number), 1); err == nil {
		c.group, c.tail = &s.State, s.State.Tail
	}
}
