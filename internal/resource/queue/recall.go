package queue

import (
	"strconv"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/token"
)

// keepReceive is what a receive's receipt stores: which leases were given, and in
// the place of the tokens the number of the queue, since the next one of its name
// gives the same leases. The rest is rendered again from the messages, while the
// leases last.
func keepReceive(r *api.QueuesReceiveResponse) *api.QueuesReceiveResponse {
	kept := *r
	kept.Deliveries = make([]api.Delivery, len(r.Deliveries))
	for i := range r.Deliveries {
		d := &r.Deliveries[i]
		x, _ := readClaims([]byte(d.Token))
		kept.Deliveries[i] = api.Delivery{
			MessageID: d.MessageID, DeliveryGeneration: d.DeliveryGeneration, LeaseVersion: d.LeaseVersion,
			Token: strconv.FormatUint(uint64(x.resource), 10),
		}
	}
	return &kept
}

// recallReceive renders the deliveries of a repeated receive, if every lease is
// live still and the caller's policy has not changed.
func recallReceive(c *op.Ctx, req *api.QueuesReceiveRequest, resp *api.QueuesReceiveResponse) error {
	l, err := open(c, req.Lane.Queue)
	if err != nil {
		return err
	}
	who := holder(l.owner, c.Principal)
	for i := range resp.Deliveries {
		d := &resp.Deliveries[i]
		if d.Token != strconv.FormatUint(uint64(l.owner.Resource), 10) {
			return fault.New(fault.TokenInvalidated, "other_lane", "the queue that gave these deliveries was deleted; receive again")
		}
		x := Claims{MessageID: d.MessageID, Generation: d.DeliveryGeneration, LeaseVersion: d.LeaseVersion}
		m, err := l.find(x.MessageID)
		if err != nil {
			return err
		}
		if m == nil {
			return fault.New(fault.StaleLease, "lease_replaced", "the message was finished and forgotten since")
		}
		if err := live(&x, m, c.Now); err != nil {
			return err
		}
		if m.Lease.Epoch != c.Principal.PolicyEpoch {
			return leasing.PolicyChanged()
		}
		if err := render(l, d, x.MessageID, m, &who); err != nil {
			return err
		}
	}
	return nil
}

// transientReceive says that an answer without deliveries is no receipt.
func transientReceive(r *api.QueuesReceiveResponse) bool { return len(r.Deliveries) == 0 }

// finishReceive seals the tokens.
func finishReceive(d *op.Door, _ *api.QueuesReceiveRequest, r *api.QueuesReceiveResponse) error {
	for i := range r.Deliveries {
		r.Deliveries[i].Token = d.Tokens.Seal(token.Delivery, []byte(r.Deliveries[i].Token))
	}
	return nil
}
