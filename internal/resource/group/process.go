package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/inbox"
)

// prepareProcess refuses a token that does not hold before anything is logged.
func prepareProcess(d *op.Door, req *api.SubscriptionsProcessRequest) (bool, error) {
	return false, verifyToken(d, req.Token)
}

// applyProcess commits effects, inbox record and acknowledgement together; see
// inbox.Process for the order.
func applyProcess(c *op.Ctx, req *api.SubscriptionsProcessRequest) (*api.SubscriptionsProcessResponse, error) {
	g, err := open(c, req.Group)
	if err != nil {
		return nil, err
	}
	who := holder(g)
	x, err := scoped(req.Token, &who)
	if err != nil {
		return nil, err
	}
	src := g.name.Source
	in := inbox.OfEvent(src.Owner, src.StreamID, src.Generation, x.place.Position)
	out := api.PositionResult{}
	done, err := inbox.Process(c, in, req.HandlerScope, req.ExecutionGeneration, req.Effects, func(processed bool) error {
		return acknowledge(g, &x, processed, &out)
	})
	if err != nil {
		return nil, err
	}
	return &api.SubscriptionsProcessResponse{
		AlreadyProcessed: done.AlreadyProcessed, EffectsToken: done.EffectsToken, Results: done.Results,
		Position: x.place.Position, State: out.State, Checkpoint: g.head.Checkpoint,
	}, nil
}

// acknowledge finishes a delivery and closes the group. Where its work is known
// to be done, a lease that does not hold any more changes nothing, and the answer
// is where the position stands.
func acknowledge(g *group, x *claims, processed bool, out *api.PositionResult) error {
	e, dl, err := g.placed(x.place)
	if err != nil {
		return err
	}
	err = live(x, e, g.c.Now)
	if f := fault.From(err); processed && f != nil {
		return stands(g, x.place, e, out)
	}
	if err != nil {
		return err
	}
	if err := ack(g, x.place, e, dl, out); err != nil {
		return err
	}
	return g.close()
}

// stands tells where a place is that the caller does not hold.
func stands(g *group, p place, e *entry, out *api.PositionResult) error {
	switch {
	case e != nil:
		out.State = e.State.name()
	case p.Position > g.head.Issued: // the group was moved back
		out.State = api.PositionPending
	default:
		out.State = api.PositionFinished
	}
	return nil
}
