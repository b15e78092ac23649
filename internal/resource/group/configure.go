package group

import (
	"bytes"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/token"
)

// prepareConfigure keeps a cursor that does not hold out of the log. Only a new
// group looks at it: whoever configures the same group at every start may do so
// with a cursor that has grown old.
func prepareConfigure(d *op.Door, req *api.SubscriptionsConfigureRequest) (changed bool, err error) {
	cursor := &req.Definition.Cursor
	switch code := fault.CodeOf(verifyCursor(d, *cursor)); code {
	case "":
		return false, nil
	case fault.TokenInvalidated:
		*cursor = leasing.OtherIncarnation
	default:
		*cursor = ""
	}
	return true, nil
}

func verifyCursor(d *op.Door, text string) error {
	if text == "" {
		return nil
	}
	_, err := d.Tokens.Open(token.Cursor, text)
	return err
}

// applyConfigure creates a group, or replaces its definition.
func applyConfigure(c *op.Ctx, req *api.SubscriptionsConfigureRequest) (*api.SubscriptionsConfigureResponse, error) {
	res, key, err := source.Resolve(&c.Scope, req.Group.Source)
	if err != nil {
		return nil, err
	}
	n := name{key, req.Group.Group}
	def, err := definitions.Shared(c.Tx, n)
	if err != nil {
		return nil, err
	}
	wanted, start := table.Clone(&req.Definition), req.Definition.Start
	wanted.Start, wanted.Cursor = "", "" // where it begins is no part of what it is
	switch {
	case def == nil && req.ExpectedGeneration != 0:
		return nil, fault.New(fault.NotFound, "unknown_group", "there is no group %q to update; configure it without expectedGeneration to create it", n.Group)
	case def == nil:
		return create(c, res, n, wanted, &req.Definition)
	}
	g, err := openNamed(c, res, n, def)
	if err != nil {
		return nil, err
	}
	if req.ExpectedGeneration != 0 {
		return update(g, wanted, start, req.ExpectedGeneration)
	}
	if !bytes.Equal(fingerprintOf(wanted), def.Fingerprint) {
		return nil, fault.New(fault.Conflict, "group_exists", "group %q exists with another definition, at generation %d; nothing was changed. To replace the definition as a whole, pause the group and give expectedGeneration", n.Group, g.head.Generation).
			With("generation", "%d", g.head.Generation)
	}
	return configured(g, false)
}

func configured(g *group, changed bool) (*api.SubscriptionsConfigureResponse, error) {
	src, err := source.Look(&g.c.Scope, g.name.Source)
	if err != nil {
		return nil, err
	}
	return &api.SubscriptionsConfigureResponse{State: g.head.state(src.Tail), Definition: *table.Clone(&g.def.Wanted), Changed: changed}, nil
}

// create makes a group at the place where the request wants it to begin.
func create(c *op.Ctx, res *api.Resource, n name, wanted, asked *api.GroupDefinition) (*api.SubscriptionsConfigureResponse, error) {
	def := &definition{ID: c.Position, Wanted: *wanted, Fingerprint: fingerprintOf(wanted), CreatedAt: c.Now, Tenant: res.Tenant}
	if _, err := dataPrincipal(&c.Scope, res, def); err != nil {
		return nil, err
	}
	if err := roomForGroup(c, n); err != nil {
		return nil, err
	}
	src, err := source.Look(&c.Scope, n.Source)
	if err != nil {
		return nil, err
	}
	at := src.Cut
	switch asked.Start {
	case api.StartNow:
		at = src.Tail
	case api.StartCursor:
		if at, err = cursorPlace(c, n.Source, &src, asked.Cursor); err != nil {
			return nil, err
		}
	}
	// From here on it succeeds.
	definitions.Put(c.Tx, n, def)
	g := &group{c: c, res: res, name: n, def: def, policy: &def.Wanted.Policy, ref: def.ref(n)}
	// Generations begin at a position of the shard, which is never given twice: whoever
	// expects that of a deleted group of this name is refused by this one.
	g.head = head{Generation: c.Position, Epoch: c.Position, Checkpoint: at, Issued: at}
	if err := source.Repin(c, n.Source); err != nil {
		return nil, err
	}
	if err := g.close(); err != nil {
		return nil, err
	}
	return configured(g, true)
}

// roomForGroup bounds the groups of one source.
func roomForGroup(c *op.Ctx, n name) error {
	count := 0
	err := definitions.Scan(c.Tx, table.Range{Prefix: n.Source.Append(nil)}, func(name, *definition) (bool, error) {
		count++
		return count < limits.GroupsPerSource, nil
	})
	if err == nil && count >= limits.GroupsPerSource {
		err = fault.New(fault.ResourceExhausted, "group_limit", "the source has %d groups, which is the most one source may have; delete one", count).
			With("limit", "%d", limits.GroupsPerSource)
	}
	return err
}

// cursorPlace is the place of a verified cursor within what is retained.
func cursorPlace(c *op.Ctx, k source.Key, src *source.Head, text string) (uint64, error) {
	if text == leasing.OtherIncarnation {
		return 0, fault.New(fault.TokenInvalidated, "other_incarnation", "the cursor belongs to another history of this store (it was restored since, or the cursor is of another store); read the source again to get one")
	}
	at, err := source.CursorPosition(c, k, text)
	if err != nil {
		return 0, err
	}
	return at, within(src, at+1)
}

// within refuses a next position before the first retained event, or more than
// one after the tail.
func within(src *source.Head, next uint64) error {
	switch {
	case next < src.First():
		return fault.New(fault.HistoryUnavailable, "purged", "position %d is gone; the first available position is %d", next, src.First()).
			With("firstAvailable", "%d", src.First())
	case next > src.Tail+1:
		return fault.Invalid("/position", "is %d; the source ends at %d, so the furthest place to go on from is %d", next, src.Tail, src.Tail+1).
			With("tail", "%d", src.Tail)
	}
	return nil
}

// update replaces the definition of a paused group and drops its window.
func update(g *group, wanted *api.GroupDefinition, start api.GroupStart, expected uint64) (*api.SubscriptionsConfigureResponse, error) {
	if err := mayUpdate(g, start, expected); err != nil {
		return nil, err
	}
	print := fingerprintOf(wanted)
	if bytes.Equal(print, g.def.Fingerprint) {
		return configured(g, false)
	}
	def := *g.def
	def.Wanted, def.Fingerprint = *wanted, print
	if _, err := dataPrincipal(&g.c.Scope, g.res, &def); err != nil {
		return nil, err
	}
	finishedAhead, err := drop(g)
	if err != nil {
		return nil, err
	}
	// From here on it succeeds.
	skipped := g.head.PassedBelow
	g.head.Generation++
	g.head.Epoch++
	g.head.Issued = g.head.Checkpoint
	definitions.Put(g.c.Tx, g.name, &def)
	g.def, g.policy = &def, &def.Wanted.Policy
	if err := g.close(); err != nil {
		return nil, err
	}
	resp, err := configured(g, true)
	if err == nil {
		resp.EvaluatedAgain, resp.SkippedBelow = finishedAhead, int64(skipped)
	}
	return resp, err
}

// mayUpdate holds the conditions of messaging §3.
func mayUpdate(g *group, start api.GroupStart, expected uint64) error {
	if err := g.at(expected); err != nil {
		return err
	}
	if start != api.StartBeginning {
		return fault.Invalid("/definition/start", "must be beginning in an update: it cannot move the group; use subscriptions.seek")
	}
	if !g.head.Paused {
		return fault.New(fault.Conflict, "not_paused", "group %q is not paused; pause it, so that no worker gets events of two filters, then update it", g.name.Group)
	}
	src, err := source.Look(&g.c.Scope, g.name.Source)
	if err != nil {
		return err
	}
	if g.head.Checkpoint+1 < src.First() || g.head.Checkpoint > src.Tail {
		return historyGone(g.name.Group, g.head.Checkpoint, src.First())
	}
	return nil
}
