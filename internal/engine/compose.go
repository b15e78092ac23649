package engine

import (
	"context"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/op"
)

// composition is a call of a composite operation: the whole is checked before the
// first part, and then each part comes through the door by itself, on whichever node
// its shard is led.
type composition struct{ *call }

func (c composition) run(ctx context.Context) (any, error) {
	if err := validate(c.req); err != nil {
		return nil, err
	}
	if err := c.authorize(ctx); err != nil {
		return nil, err
	}
	parts := c.h.Parts(c.req)
	outcomes := make([]op.PartOutcome, len(parts))
	submitted, stopped := false, false
	for i := range parts {
		o := &outcomes[i]
		if o.Status = api.PartNotAttempted; stopped {
			continue
		}
		if ctx.Err() != nil {
			return nil, left(submitted)
		}
		*o = c.part(ctx, &parts[i])
		if submitted = submitted || c.happened(&parts[i], o); ctx.Err() != nil && o.Status != api.PartCommitted {
			return nil, left(submitted)
		}
		stopped = o.Status == api.PartUnknown
	}
	return c.h.Join(c.req, outcomes), nil
}

// part is one command as if its caller had sent it alone.
func (c composition) part(ctx context.Context, p *op.Part) op.PartOutcome {
	resp, err := c.Do(ctx, c.who, p.Op, p.Req)
	switch f := fault.From(err); {
	case f == nil:
		return op.PartOutcome{Status: api.PartCommitted, Response: resp}
	case f.Code == fault.UnknownWriteOutcome:
		return op.PartOutcome{Status: api.PartUnknown, Err: f}
	default:
		return op.PartOutcome{Status: api.PartRejected, Err: f}
	}
}

// happened says that a part may have changed something: an answer that needed no
// place in the log has a receipt without a position, and a refusal leaves at most
// itself.
func (c composition) happened(p *op.Part, o *op.PartOutcome) bool {
	if o.Status == api.PartCommitted {
		h, ok := c.registry.Handler(p.Op.Name)
		return !ok || h.Receipt(o.Response).Token.Position != 0
	}
	return o.Status == api.PartUnknown
}

// left is the answer to a caller who went away between or during the parts.
func left(submitted bool) error {
	if !submitted {
		return commitlog.Unsubmitted()
	}
	return fault.New(fault.UnknownWriteOutcome, "caller_left",
		"the caller stopped waiting after a part of this call was submitted; that part, and each before it, may have happened, and none after it. "+
			"Repeat the parts unchanged, alone or together, to learn their outcome")
}
