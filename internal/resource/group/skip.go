package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

// applySkip finishes one position without delivering it, and records why.
func applySkip(c *op.Ctx, req *api.SubscriptionsSkipRequest) (*api.SubscriptionsSkipResponse, error) {
	g, tail, err := openAt(c, req.Group, req.ExpectedGeneration)
	if err != nil {
		return nil, err
	}
	e, err := g.find(req.Position)
	if err != nil {
		return nil, err
	}
	next := g.head.Issued + 1
	switch {
	case req.Position > tail:
		return nil, fault.Invalid("/position", "is %d, after the last position %d", req.Position, tail).With("tail", "%d", tail)
	case req.Position > next:
		return nil, fault.New(fault.Conflict, "not_issued", "position %d is not issued yet; the next one is %d, and only that one or an unfinished one can be skipped", req.Position, next).
			With("next", "%d", next)
	case e == nil && req.Position < next:
		return nil, fault.New(fault.Conflict, "finished", "position %d is finished already; nothing is left to skip", req.Position)
	case e == nil && g.head.Matched >= g.policy.MaxWindow:
		return nil, fault.New(fault.Conflict, "window_full", "the window is full, so position %d cannot be issued, not even to skip it; finish or skip the lowest unfinished position first", req.Position)
	}
	// From here on it succeeds.
	if e != nil {
		err = g.finish(req.Position, e)
	} else {
		g.head.Issued, g.head.Matched = next, g.head.Matched+1
		g.done = append(g.done, stretch{next, next, 1})
	}
	if err != nil {
		return nil, err
	}
	remember(g, req)
	if err := g.close(); err != nil {
		return nil, err
	}
	return &api.SubscriptionsSkipResponse{State: g.head.state(tail)}, nil
}

// remember keeps a record of a skip, and forgets the one before the last GroupSkips.
func remember(g *group, req *api.SubscriptionsSkipRequest) {
	h := &g.head
	h.Totals.Skipped++
	h.Skip++
	if h.Skip > limits.GroupSkips {
		skips.Delete(g.c.Tx, rowKey{g.ref, h.Skip - limits.GroupSkips})
	}
	skips.Insert(g.c.Tx, rowKey{g.ref, h.Skip}, &skip{Position: req.Position, Reason: req.Reason, Principal: g.c.Principal.ID, At: g.c.Now})
}

// firstSkip is the number of the oldest skip that is remembered; above that of the
// last one when there is none.
func firstSkip(h *head) uint64 {
	if h.Skip <= limits.GroupSkips {
		return 1
	}
	return h.Skip - limits.GroupSkips + 1
}

// lastSkips lists the skips that are remembered, the newest last.
func lastSkips(s *op.Scope, f ref, h *head) (out []api.SkippedPosition, err error) {
	from := rowKey{f, firstSkip(h)} // not from the start, over those that were forgotten
	err = skips.Scan(s.R, table.Range{Prefix: f.append(nil), From: appendRow(nil, from)}, func(_ rowKey, v *skip) (bool, error) {
		out = append(out, api.SkippedPosition{Position: v.Position, Reason: v.Reason, Principal: v.Principal, At: api.Time(v.At)})
		return true, nil
	})
	return out, err
}
