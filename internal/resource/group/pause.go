package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/source"
)

// applyPause stops the claims of a group. One that is paused already changes
// nothing.
func applyPause(c *op.Ctx, req *api.SubscriptionsPauseRequest) (*api.SubscriptionsPauseResponse, error) {
	g, tail, err := openAt(c, req.Group, req.ExpectedGeneration)
	if err != nil {
		return nil, err
	}
	changed := !g.head.Paused
	g.head.Paused = true
	return &api.SubscriptionsPauseResponse{State: g.head.state(tail), Changed: changed}, g.close()
}

// applyResume lets a group deliver again and forgets why it paused itself.
func applyResume(c *op.Ctx, req *api.SubscriptionsResumeRequest) (*api.SubscriptionsResumeResponse, error) {
	g, tail, err := openAt(c, req.Group, req.ExpectedGeneration)
	if err != nil {
		return nil, err
	}
	changed := g.head.Paused
	g.head.Paused, g.head.FailureCode, g.head.FailedPosition = false, "", 0
	if changed {
		g.woken = everyone
	}
	return &api.SubscriptionsResumeResponse{State: g.head.state(tail), Changed: changed}, g.close()
}

// openAt opens a group at a generation, with the tail of its source.
func openAt(c *op.Ctx, r api.GroupRef, generation uint64) (*group, uint64, error) {
	g, err := open(c, r)
	if err != nil {
		return nil, 0, err
	}
	if err := g.at(generation); err != nil {
		return nil, 0, err
	}
	src, err := source.Look(&c.Scope, g.name.Source)
	return g, src.Tail, err
}
