package group

import (
	"strconv"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/token"
)

// keepReceive is what a receive's receipt stores: which leases were given, and in
// the place of the tokens the number of the group, since the next one of its name
// gives the same leases. The rest is rendered again from the source, while the
// leases last.
func keepReceive(r *api.SubscriptionsReceiveResponse) *api.SubscriptionsReceiveResponse {
	kept := *r
	kept.Deliveries = make([]api.GroupDelivery, len(r.Deliveries))
	for i := range r.Deliveries {
		d := &r.Deliveries[i]
		c, _ := readClaims([]byte(d.Token))
		kept.Deliveries[i] = api.GroupDelivery{LeaseVersion: d.LeaseVersion, Redriven: d.Redriven, Token: strconv.FormatUint(c.id, 10)}
		kept.Deliveries[i].Event.Position = d.Event.Position
	}
	return &kept
}

// recallReceive renders the deliveries of a repeated receive, if every lease is
// live still, the group at its generation, and the caller's policy unchanged.
func recallReceive(c *op.Ctx, req *api.SubscriptionsReceiveRequest, resp *api.SubscriptionsReceiveResponse) error {
	g, err := open(c, req.Group)
	if err != nil {
		return err
	}
	if resp.Generation != g.head.Generation {
		return fault.New(fault.TokenInvalidated, "generation_changed", "the group was moved or given another filter since; receive again")
	}
	show, err := newViewer(g)
	if err != nil {
		return err
	}
	who := holder(g)
	for i := range resp.Deliveries {
		if resp.Deliveries[i].Token != strconv.FormatUint(g.ref.ID, 10) {
			return fault.New(fault.TokenInvalidated, "other_group", "the group that gave these deliveries was deleted; receive again")
		}
		if err := recall(g, &resp.Deliveries[i], show, &who); err != nil {
			return err
		}
	}
	return nil
}

func recall(g *group, d *api.GroupDelivery, show *viewer, who *claims) error {
	x := claims{place: place{!d.Redriven, d.Event.Position}, version: d.LeaseVersion}
	e, dl, err := g.placed(x.place)
	if err != nil {
		return err
	}
	if e == nil {
		return fault.New(fault.StaleLease, "lease_replaced", "position %d was finished since", x.place.Position)
	}
	if err := live(&x, e, g.c.Now); err != nil {
		return err
	}
	l, err := g.leaseOf(e)
	if err != nil {
		return err
	}
	if l.row.Epoch != g.c.Principal.PolicyEpoch {
		return leasing.PolicyChanged()
	}
	event, err := eventOf(g, x.place, dl)
	if err != nil {
		return err
	}
	return show.render(d, x.place, e, &event, who)
}

// transientReceive says that an answer without deliveries is no receipt.
func transientReceive(r *api.SubscriptionsReceiveResponse) bool { return len(r.Deliveries) == 0 }

// finishReceive seals the tokens.
func finishReceive(d *op.Door, _ *api.SubscriptionsReceiveRequest, r *api.SubscriptionsReceiveResponse) error {
	for i := range r.Deliveries {
		r.Deliveries[i].Token = d.Tokens.Seal(token.GroupDelivery, []byte(r.Deliveries[i].Token))
	}
	return nil
}
