package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/resource/source"
)

// claimAll leases the places, in one lease row, and renders them.
func claimAll(g *group, req *api.SubscriptionsReceiveRequest, claims []claim1, show *viewer, resp *api.SubscriptionsReceiveResponse) error {
	if len(claims) == 0 {
		return nil
	}
	h, who := &g.head, holder(g)
	h.Batch++
	until := leasing.After(g.c.Now, req.LeaseSeconds*1000)
	l := &heldLease{
		key: timeKey{g.ref, until, h.Batch}, made: true, left: len(claims),
		row: lease{Principal: g.c.Principal.ID, Epoch: g.c.Principal.PolicyEpoch, Session: req.SessionID, Places: make([]uint64, len(claims))},
	}
	resp.Deliveries = make([]api.GroupDelivery, len(claims))
	for i := range claims {
		x := &claims[i]
		if !x.isNew {
			if err := g.leave(x.place, x.entry); err != nil {
				return err
			}
		}
		x.entry.Attempts++
		x.entry.Until, x.entry.Batch, x.entry.First = until, h.Batch, g.c.Now
		enterLeased(g, x)
		l.row.Places[i] = x.place.code()
		if err := show.render(&resp.Deliveries[i], x.place, x.entry, &x.event, &who); err != nil {
			return err
		}
	}
	g.held = append(g.held, l)
	h.Totals.Delivered += int64(len(claims))
	g.woken = max(0, g.woken-len(claims)) // what this receive took of what it made ready
	return nil
}

// enterLeased is move for a claim: a new position has no row yet.
func enterLeased(g *group, x *claim1) {
	g.enter(x.place, x.entry, leased)
	if x.isNew {
		rows.Insert(g.c.Tx, rowKey{g.ref, x.place.Position}, &row{entry: *x.entry})
		return
	}
	g.store(x.place, x.entry, x.dead)
}

// viewer says what a worker may see of events: no more than the worker, and no
// more than the group's data principal.
type viewer struct {
	res    *api.Resource
	worker *api.Principal
	data   *api.Principal // nil when the group has none
}

// newViewer finds the data principal as it is now. Errors: PermissionDenied when it
// is gone, or may not read the source any more.
func newViewer(g *group) (*viewer, error) {
	v := &viewer{res: g.res, worker: g.c.Principal}
	var err error
	v.data, err = dataPrincipal(&g.c.Scope, g.res, g.def)
	return v, err
}

func dataPrincipal(s *op.Scope, res *api.Resource, def *definition) (*api.Principal, error) {
	id := def.Wanted.DataPrincipal
	if id == "" {
		return nil, nil
	}
	p, err := access.Find(s.R, s.Space.Shard, def.Tenant, id)
	if err != nil {
		return nil, err
	}
	need := op.Need{Capability: api.CapTopicsRead, Tenant: res.Tenant, Database: res.Database, Resource: res.Name}
	if res.Kind == api.KindStreamSet {
		need.Capability = api.CapEventsRead
	}
	if p == nil || access.Active(p, s.Now) != nil || access.Allow(p, need) != nil {
		return nil, fault.New(fault.PermissionDenied, "data_principal", "the group's data principal %q does not exist, is revoked, or may not read the source; configure the principal, or the group with another", id)
	}
	return p, nil
}

// dataPrincipalGone says that the group can show nothing to anybody.
func dataPrincipalGone(s *op.Scope, res *api.Resource, def *definition) (bool, error) {
	_, err := dataPrincipal(s, res, def)
	if fault.CodeOf(err) == fault.PermissionDenied {
		return true, nil
	}
	return false, err
}

// render fills a delivery.
func (v *viewer) render(d *api.GroupDelivery, at place, e *entry, event *source.Record, who *claims) error {
	*d = api.GroupDelivery{
		Event: event.Stored(at.Position), Token: who.unsealed(at, e.Batch), Attempt: int64(e.Attempts),
		LeaseUntil: api.Time(e.Until), LeaseVersion: e.Batch, Redriven: !at.Window,
	}
	return v.project(&d.Event)
}

// project takes out of an event what may not be seen.
func (v *viewer) project(e *api.StoredEvent) (err error) {
	if len(e.Payload) == 0 {
		return nil
	}
	if e.Payload, e.Redacted, err = access.Project(v.worker, v.res, e.Payload); err != nil || v.data == nil {
		return err
	}
	var also []string
	e.Payload, also, err = access.Project(v.data, v.res, e.Payload)
	e.Redacted = append(e.Redacted, also...)
	return err
}
