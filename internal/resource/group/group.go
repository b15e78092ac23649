package group

import (
	"errors"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/table"
)

// group is one group open for one command: a copy of its head to change, and
// what is written once however many positions it concerns. Nothing of it outlives
// close.
type group struct {
	c      *op.Ctx
	res    *api.Resource // shared: never changed
	name   name
	def    *definition // shared: never changed
	policy *api.GroupPolicy
	ref    ref
	before head // as it was opened
	head   head

	done  []stretch    // finished by this command, not in the window yet
	held  []*heldLease // lease rows that this command changes or makes
	woken int          // places that may be claimed since this command
	again bool         // bounded work was left over: come back at once
}

var (
	errUnlisted = errors.New("an index lists a position that is not stored, or that is in another state")
	errWindow   = errors.New("the window is not what its head says")
)

// look finds a group without opening it. Errors: those of resolving the source,
// NotFound.
func look(s *op.Scope, r api.GroupRef) (*api.Resource, name, *definition, error) {
	res, key, err := source.Resolve(s, r.Source)
	if err != nil {
		return nil, name{}, nil, err
	}
	n := name{key, r.Group}
	def, err := definitions.Shared(s.R, n)
	if err == nil && def == nil {
		err = fault.New(fault.NotFound, "unknown_group", "there is no group %q on %s %q; configure it first: a group that is absent never starts anywhere by itself", r.Group, res.Kind, res.Name)
	}
	return res, n, def, err
}

func (d *definition) ref(n name) ref { return ref{n.Source.Owner, d.ID} }

// headOf reads the head of a group that exists.
func headOf(s *op.Scope, f ref) (*head, error) {
	h, err := heads.Shared(s.R, f)
	if err == nil && h == nil {
		err = &table.Damage{Table: heads.Name, Key: heads.Bytes(f), Cause: errors.New("the head of a group is missing")}
	}
	return h, err
}

// open finds a group in the command's partition.
func open(c *op.Ctx, r api.GroupRef) (*group, error) {
	res, n, def, err := look(&c.Scope, r)
	if err != nil {
		return nil, err
	}
	return openNamed(c, res, n, def)
}

func openNamed(c *op.Ctx, res *api.Resource, n name, def *definition) (*group, error) {
	g := &group{c: c, res: res, name: n, def: def, policy: &def.Wanted.Policy, ref: def.ref(n)}
	h, err := headOf(&c.Scope, g.ref)
	if err != nil {
		return nil, err
	}
	g.before, g.head = *h, *h
	return g, nil
}

// at refuses a group that is not at the expected generation.
func (g *group) at(generation uint64) error { return atGeneration(&g.head, g.name.Group, generation) }

func atGeneration(h *head, group string, generation uint64) error {
	if h.Generation == generation {
		return nil
	}
	what := "it was moved or given another filter since; see subscriptions.status and decide anew"
	if generation > h.Generation {
		what = "it never was at that one; see subscriptions.status"
	}
	return fault.New(fault.RevisionConflict, "group_generation", "group %q is at generation %d, not %d: %s", group, h.Generation, generation, what).
		With("generation", "%d", h.Generation).With("expected", "%d", generation)
}

// close writes what the positions of the command share: gap runs, lease rows,
// the head, the due row. A group that did not change is not written.
func (g *group) close() error {
	if err := g.fold(); err != nil {
		return err
	}
	writeLeases(g)
	h := &g.head
	h.normalize()
	g.arm()
	if *h != g.before {
		heads.Put(g.c.Tx, g.ref, h)
	}
	if n := g.woken + g.roomMade(); n > 0 && !h.Paused {
		g.c.Wake(wakeKey(g.ref), n)
	}
	if h.Paused && !g.before.Paused || h.Epoch != g.before.Epoch {
		g.c.Wake(wakeKey(g.ref), everyone) // who waits learns that nothing will come
	}
	return nil
}

// everyone is the count of a wake-up that serves all who wait.
const everyone = 1 << 20

// wakeKey is what receives of a group wait for, beside the events of its source.
func wakeKey(f ref) string { return "g" + string(f.append(nil)) }

// roomMade is how many waiting receives may go on because the window or the
// leases were full and are not any more.
func (g *group) roomMade() int {
	b, h := &g.before, &g.head
	if b.Matched < g.policy.MaxWindow && b.inFlight() < g.policy.MaxInFlight {
		return 0
	}
	return int(max(0, min(everyone, max(b.Matched-h.Matched, b.inFlight()-h.inFlight()))))
}

// arm moves the due row when something earlier turned up.
func (g *group) arm() {
	when := leasing.Earlier(g.head.First.Wait, g.head.First.Lease)
	if g.again {
		when = g.c.Now
	}
	table.ArmBy(g.c.Tx, g.ref.Owner.Shard, table.DueGroup, g.name.append(nil), &g.head.Armed, when)
}
