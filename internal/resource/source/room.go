package source

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/op"
)

// trimRowsMillis is how long the rows of trimmed events stay. A full source is
// trimmed by every append: their rows go together, not in a command for each.
const trimRowsMillis = 1000

// quota is one bound of a policy that an append would exceed.
type quota struct {
	name        string
	max         int64
	has, needed uint64
}

// exceeded finds the bound that the retained events would exceed.
func exceeded(p *api.SourcePolicy, before, after *Head) (quota, bool) {
	for _, q := range [...]quota{
		{"maxEvents", p.MaxEvents, before.Events(), after.Events()},
		{"maxBytes", p.MaxBytes, before.Bytes(), after.Bytes()},
	} {
		if q.needed > uint64(q.max) {
			return q, true
		}
	}
	return quota{}, false
}

// room is what an append removes before it adds: the events up to a position,
// before which there are so many bytes.
type room struct {
	through, bytes uint64
}

// makeRoom finds what must go so that an append leaves no more than the policy
// allows; nothing when there is room. It refuses the append when the policy does
// not trim, when the append alone is too large, and when a pin is in the way.
// after is the head as the append would leave it without a trim; what is learned
// of pins is noted there.
func makeRoom(c *op.Ctx, r *api.Resource, k Key, before, after *Head) (room, error) {
	p := r.Source
	full, is := exceeded(p, before, after)
	if !is {
		return room{}, nil
	}
	if p.OnFull != api.OnFullTrim {
		return room{}, full.refuse(r, "it holds %d and this would make it %d; purge events or raise %s", full.has, full.needed, full.name)
	}
	alone := *after
	alone.Cut, alone.CutBytes = before.Tail, before.TailBytes
	if q, is := exceeded(p, before, &alone); is {
		return room{}, q.refuse(r, "this alone is %d; write less at once or raise %s", q.needed, q.name)
	}
	// The first event goes, whichever bound is exceeded, and so do all that are one
	// too many. Behind them it goes on until the bytes fit, which they do without
	// any.
	known := before.Cut + 1
	if most := uint64(p.MaxEvents); after.Tail > most {
		known = max(known, after.Tail-most)
	}
	room := room{bytes: before.TailBytes}
	var next stamp
	var err error
	room.through, next, err = lastPassing(&c.Scope, k, known, before.Tail, func(at stamp) bool {
		return after.TailBytes-at.Before > uint64(p.MaxBytes)
	})
	if err != nil {
		return room, err
	}
	if room.through < before.Tail {
		room.bytes = next.Before
	}
	pin, err := held(&c.Scope, k, after, room.through)
	if err == nil && pin != nil {
		why := fmt.Sprintf("%s %q is full (%s is %d) and the events up to position %d would have to make room", r.Kind, r.Name, full.name, full.max, room.through)
		err = pinned(&c.Scope, r, k, before, pin, room.through, why, ", or raise "+full.name)
	}
	return room, err
}

// refuse is the refusal of an append that exceeds the bound.
func (q quota) refuse(r *api.Resource, format string, args ...any) error {
	return fault.New(fault.ResourceExhausted, "source_full",
		"%s %q keeps at most %d (%s); "+format, append([]any{r.Kind, r.Name, q.max, q.name}, args...)...).
		With("limit", "%s", q.name).With("max", "%d", q.max).With("current", "%d", q.has).With("needed", "%d", q.needed)
}
