package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/machine"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/table"
	"github.com/keyload/keyload/internal/wire"
)

// Do carries out one operation for a caller. req is a pointer to the
// operation's request type and must not be changed during the call; the result
// is a pointer to its response type. The error is always a *fault.Error. When
// ctx ends, a call that waits for something to deliver claims nothing; a command
// that was already submitted answers UnknownWriteOutcome.
func (e *Engine) Do(ctx context.Context, who *Caller, o *api.Operation, req any) (any, error) {
	id := ""
	if c, ok := req.(api.CommandRequest); ok {
		id = c.GetCommandID()
	}
	h, ok := e.registry.Handler(o.Name)
	if !ok || h.Op.Number >= internalNumbers {
		return nil, e.public(fault.New(fault.NotFound, "unknown_operation", "there is no operation %s here", o.Name), id)
	}
	resp, err := e.do(ctx, who, h, req)
	if err != nil {
		return nil, e.public(err, id)
	}
	return resp, nil
}

// internalNumbers are operations that only the engine proposes.
const internalNumbers = 60000

// call is one call on its way through the door.
type call struct {
	h         *op.Handler
	req       any
	who       *Caller
	shard     uint16
	scope     op.Scope
	id        [16]byte
	command   machine.Command
	encodable bool
}

// do is the list of steps, in order.
func (e *Engine) do(ctx context.Context, who *Caller, h *op.Handler, req any) (any, error) {
	if err := validate(req); err != nil {
		return nil, err
	}
	c := &call{h: h, req: req, who: who}
	e.route(c)
	if err := e.authorize(ctx, c); err != nil {
		return nil, err
	}
	if h.Run != nil {
		return e.waiting(ctx, c, func() (any, error) { return e.query(ctx, c) })
	}
	if err := e.prepare(c); err != nil {
		return nil, err
	}
	if req, ok := req.(*api.ResourcesDeleteRequest); ok {
		return e.deleteResource(ctx, c, req)
	}
	return e.waiting(ctx, c, func() (any, error) { return e.write(ctx, c) })
}

func validate(req any) error {
	violations := api.Validate(req)
	if len(violations) == 0 {
		return nil
	}
	v := violations[0]
	where := v.Path
	if where == "" {
		where = "the request"
	}
	f := fault.New(fault.Validation, "invalid_request", "%s %s", where, v.Message)
	if len(violations) > 1 {
		f.Detail = fmt.Sprintf("%s, and %d more", f.Detail, len(violations)-1)
	}
	f.Violations = violations
	return f
}

// route finds the shard and the place that evaluate the request.
func (e *Engine) route(c *call) {
	c.scope = op.Scope{Incarnation: e.identity.Incarnation, Registry: e.registry}
	if r, ok := c.req.(api.PartitionRequest); ok && c.h.Op.Scope == api.PartitionScope {
		c.scope.Partition = r.TargetPartition()
		hash := partitions.Hash(c.scope.Partition)
		c.shard = partitions.ShardOf(hash, e.identity.Shards)
		c.scope.Space = table.Space{Shard: c.shard, Partition: hash}
		return
	}
	c.shard = system.CatalogShard
	c.scope.Space = table.Space{Shard: system.CatalogShard}
}

// authorize decides at the door by the catalog's newest durable policies; the
// state machine decides again by the shard's copy.
func (e *Engine) authorize(ctx context.Context, c *call) error {
	p, err := e.policy(ctx, c.who)
	if err != nil {
		return err
	}
	if err := access.Active(p, e.clock.millis()); err != nil {
		return err
	}
	for _, n := range c.h.Needs(c.req) {
		if err := access.Allow(p, n); err != nil {
			return err
		}
	}
	c.scope.Principal = p
	return nil
}

// prepare gives the command its identity and its one encoding.
func (e *Engine) prepare(c *call) error {
	r, ok := c.req.(api.CommandRequest)
	if !ok {
		return fmt.Errorf("engine: the request of %s has no command id", c.h.Op.Name)
	}
	id, err := uuid.Parse(r.GetCommandID())
	if err != nil {
		return fault.Invalid("/commandId", "is not a UUID; make one (version 7 is best) and keep it for retries")
	}
	c.id = id
	fingerprint, encoded, err := wire.Fingerprint(c.h.Op.Number, c.req)
	if err != nil {
		return fault.New(fault.Validation, "not_encodable", "the request cannot be encoded: %v", err)
	}
	if len(encoded) > limits.BatchBytes {
		return fault.New(fault.Validation, "request_too_large", "the request takes %d bytes; the limit is %d", len(encoded), limits.BatchBytes).
			With("limit", "%d", limits.BatchBytes)
	}
	if c.h.Prepare != nil {
		changed, err := c.h.Prepare(e.door(), c.req)
		if err != nil {
			return err
		}
		if changed {
			if encoded, err = wire.EncodeLog(c.req); err != nil {
				return err
			}
		}
	}
	c.command = machine.NewCommand(c.h.Op, machine.Identity{
		ID: c.id, Tenant: c.who.tenant, Principal: c.who.principal,
		Partition: c.scope.Partition, Hash: c.scope.Space.Partition,
	}, fingerprint, encoded, c.req)
	return nil
}

func (e *Engine) door() *op.Door {
	return &op.Door{Tokens: e.tokens, Now: e.clock.millis(), Random: random}
}

// write proposes a command, unless a snapshot already gives the certain answer
// that nothing would happen.
func (e *Engine) write(ctx context.Context, c *call) (any, error) {
	if ctx.Err() != nil {
		return nil, fault.New(fault.Cancelled, "cancelled", "the caller went away before the command was submitted; nothing happened")
	}
	if err := e.trustClock(c.shard); err != nil {
		return nil, err
	}
	if c.h.Cheap != nil {
		resp, err := e.cheap(ctx, c)
		if resp != nil || err != nil {
			return resp, err
		}
	}
	size := len(c.command.Request)
	if err := e.admission.enter(c.who.tenant, size, c.h.Urgent); err != nil {
		return nil, err
	}
	out, err := e.log.Propose(ctx, c.shard, c.command)
	e.admission.leave(c.who.tenant, size)
	if c.h.Op.Scope == api.CatalogScope {
		e.callers.forget()
		if err == nil {
			err = e.Propagate(ctx)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case out.Err != nil:
		return nil, out.Err
	}
	if c.h.Finish != nil {
		if err := c.h.Finish(e.door(), c.req, out.Response); err != nil {
			return nil, err
		}
	}
	return out.Response, nil
}

func (e *Engine) trustClock(shard uint16) error {
	if err := e.clock.trusted(); err != nil {
		return err
	}
	return e.clock.believe(e.log.Status(shard).Time)
}

// cheap asks the handler for a certain answer from a snapshot. A command whose
// receipt is stored is not asked about: its receipt answers.
func (e *Engine) cheap(ctx context.Context, c *call) (resp any, err error) {
	err = e.read(ctx, c.shard, func(s *kv.Snapshot) error {
		if known, err := machine.HasReceipt(s, c.shard, &c.command); known || err != nil {
			return err
		}
		resp, err = c.h.Cheap(e.view(c, s), c.req)
		return err
	})
	return resp, err
}

func (e *Engine) view(c *call, s *kv.Snapshot) *op.View {
	v := &op.View{Scope: c.scope, Door: *e.door()}
	v.R, v.Now = s, e.clock.millis()
	return v
}

// public makes sure that what a caller sees is of the contract, and names the
// command it belongs to.
func (e *Engine) public(err error, id string) *fault.Error {
	f := fault.From(err)
	switch {
	case f != nil:
	case errors.Is(err, kv.ErrCorrupt):
		e.logger.Error("damaged bytes", "error", err.Error())
		f = fault.New(fault.Corruption, "damaged_bytes", "stored bytes are damaged: %v", err)
	default:
		e.logger.Error("operation failed", "error", err.Error())
		f = fault.New(fault.RecoveryRequired, "store_failed", "the store could not do this: %v", err)
	}
	out := *f
	out.CommandID = id
	return &out
}
