package group

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// applyRedrive delivers a dead letter again, or a position that is held.
func applyRedrive(c *op.Ctx, req *api.SubscriptionsDeadLettersRedriveRequest) (*api.SubscriptionsDeadLettersRedriveResponse, error) {
	g, err := open(c, req.Group)
	if err != nil {
		return nil, err
	}
	p, e, dl, err := parked(g, req.Position, req.ExpectedVersion)
	if err != nil {
		return nil, err
	}
	event, err := eventOf(g, p, dl)
	if err != nil {
		return nil, err
	}
	// From here on it succeeds.
	e.Attempts, e.Failures, e.LeaseLosses = 0, 0, 0
	if dl != nil {
		dl.Redrives++
	}
	if err := g.move(p, e, ready, dl); err != nil {
		return nil, err
	}
	g.head.Totals.Redriven++
	return &api.SubscriptionsDeadLettersRedriveResponse{
		Position: req.Position, State: e.State.name(),
		InboxExpired: c.Now >= leasing.After(event.PublishedAt, limits.InboxSeconds*1000),
	}, g.close()
}

// applyDiscard removes a dead letter for good.
func applyDiscard(c *op.Ctx, req *api.SubscriptionsDeadLettersDiscardRequest) (*api.SubscriptionsDeadLettersDiscardResponse, error) {
	g, err := open(c, req.Group)
	if err != nil {
		return nil, err
	}
	p, _, dl, err := parked(g, req.Position, req.ExpectedVersion)
	if err != nil {
		return nil, err
	}
	if dl == nil {
		return nil, fault.New(fault.Conflict, "held", "position %d is held within the window and is no dead letter; finish it with subscriptions.skip", req.Position)
	}
	if err := discard(g, p, dl); err != nil {
		return nil, err
	}
	return &api.SubscriptionsDeadLettersDiscardResponse{Position: req.Position}, g.close()
}

// parked finds what waits for a person at a position: a held position of the
// window, else a dead letter that is not with a worker.
func parked(g *group, position, version uint64) (place, *entry, *deadLetter, error) {
	e, err := g.find(position)
	if err != nil {
		return place{}, nil, nil, err
	}
	if e != nil && e.State == held && version == 0 {
		return place{true, position}, e, nil, nil
	}
	p := place{false, position}
	e, dl, err := g.placed(p)
	switch {
	case err != nil:
		return p, nil, nil, err
	case dl == nil:
		return p, nil, nil, fault.New(fault.NotFound, "unknown_dead_letter", "position %d is neither a dead letter of group %q nor held by it", position, g.name.Group)
	case version != 0 && version != dl.Version:
		return p, nil, nil, fault.New(fault.RevisionConflict, "dead_letter_version", "the dead letter at position %d has version %d, not %d", position, dl.Version, version).
			With("version", "%d", dl.Version)
	case e.State != dead:
		return p, nil, nil, fault.New(fault.Conflict, "redriven", "the dead letter at position %d was redriven already: it is %s", position, e.State.name()).
			With("state", "%s", e.State.name())
	}
	return p, e, dl, nil
}

// runListDead answers a page of dead letters by position.
func runListDead(v *op.View, req *api.SubscriptionsDeadLettersListRequest) (*api.SubscriptionsDeadLettersListResponse, error) {
	res, n, def, err := look(&v.Scope, req.Group)
	if err != nil {
		return nil, err
	}
	show := &viewer{res: res, worker: v.Principal}
	if show.data, err = dataPrincipal(&v.Scope, res, def); err != nil {
		return nil, err
	}
	f := def.ref(n)
	prefix := f.append(nil)
	page := op.NewPage(v, fmt.Sprintf("deadletters/%d/%t", f.ID, req.WithoutEvents), prefix, req.Limit)
	from, err := page.Begin(req.Cursor)
	if err != nil {
		return nil, err
	}
	resp := &api.SubscriptionsDeadLettersListResponse{DeadLetters: []api.DeadLetter{}}
	err = deadLetters.Scan(v.R, table.Range{Prefix: prefix, From: from}, func(k rowKey, dl *deadLetter) (bool, error) {
		size := int64(len(dl.Event))
		if full := page.Full() || resp.Examined.Records > 0 && resp.Examined.Bytes+size > req.MaxBytes; full {
			resp.Cursor = page.Next(codec.AppendUint64(nil, k.Position))
			return false, nil
		}
		resp.Examined.Records++
		resp.Examined.Bytes += size
		page.Add()
		out, err := deadInfo(k, dl, show, req.WithoutEvents)
		resp.DeadLetters = append(resp.DeadLetters, out)
		return true, err
	})
	return resp, err
}

func deadInfo(k rowKey, dl *deadLetter, show *viewer, bare bool) (api.DeadLetter, error) {
	out := api.DeadLetter{
		Position: k.Position, State: dl.State.name(), Version: dl.Version, Attempts: int64(dl.Attempts), Failures: int64(dl.Failures),
		LeaseLosses: int64(dl.LeaseLosses), Redrives: int64(dl.Redrives), LastFailure: dl.LastFailure, At: api.Time(dl.At),
	}
	if bare {
		return out, nil
	}
	event, err := dl.record(k)
	if err != nil {
		return out, err
	}
	stored := event.Stored(k.Position)
	out.Event = &stored
	return out, show.project(out.Event)
}
