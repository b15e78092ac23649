package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/commitlog"
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
	c := &call{Engine: e, h: h, asked: req, who: who}
	if err := e.enter(); err != nil {
		return nil, e.public(err, id)
	}
	defer e.calls.Done()
	resp, err := c.do(ctx)
	if err != nil {
		return nil, e.public(err, id)
	}
	return resp, nil
}

// internalNumbers are operations that only the engine proposes.
const internalNumbers = 60000

// call is one call on its way through the door.
type call struct {
	*Engine
	h       *op.Handler
	asked   any // the request as the caller gave it
	req     any
	who     *Caller
	shard   uint16
	node    uint64 // that leads the shard and gets the call; 0 for this one
	given   bool   // by another node, which is told where the leader is not
	scope   op.Scope
	command machine.Command
}

// do carries the call out where its shard is led. While a leadership moves it may
// come to one node after another, each of which certainly did nothing before the next.
func (c *call) do(ctx context.Context) (any, error) {
	if c.h.Parts != nil {
		c.req = c.asked
		return composition{c}.run(ctx)
	}
	for deadline := time.Now().Add(leaderWait); ; {
		resp, err := c.once(ctx)
		if err == nil || c.cluster == nil || c.given || !untouched(err) || time.Now().After(deadline) {
			return resp, err
		}
		if err := c.cluster.wait(ctx, lookAgain); err != nil {
			return nil, err
		}
	}
}

// once is the list of steps, in order.
func (c *call) once(ctx context.Context) (any, error) {
	c.req = c.asked
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	if c.node != 0 {
		return waitingThere(ctx, c)
	}
	if c.h.Run != nil {
		return c.waiting(ctx, c.query)
	}
	if req, ok := c.req.(*api.ResourcesDeleteRequest); ok {
		return deletion{c, req}.run(ctx)
	}
	return c.waiting(ctx, c.write)
}

// ready makes a call ready to be evaluated.
func (c *call) ready(ctx context.Context) error {
	leave, err := c.queueUp(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := validate(c.req); err != nil {
		return err
	}
	if err := c.route(); err != nil {
		return err
	}
	if c.node, err = elsewhere(ctx, c); err != nil || c.node != 0 {
		return err
	}
	if err := c.authorize(ctx); err != nil || c.h.Run != nil {
		return err
	}
	c.own()
	return c.prepare()
}

func validate(req any) error {
	violations := api.Validate(req)
	if len(violations) == 0 {
		return nil
	}
	return api.ValidationError(violations)
}

// route finds the shard and the place that evaluate the request.
func (c *call) route() error {
	c.scope = op.Scope{Incarnation: c.identity.Incarnation, Registry: c.registry}
	if r, ok := c.req.(api.PartitionRequest); ok && c.h.Op.Scope == api.PartitionScope {
		c.scope.Partition = r.TargetPartition()
		hash := partitions.Hash(c.scope.Partition)
		c.shard = partitions.ShardOf(hash, c.identity.Shards)
		c.scope.Space = table.Space{Shard: c.shard, Partition: hash}
		return nil
	}
	c.shard = system.CatalogShard
	if r, ok := c.req.(interface{ TargetShard() int64 }); ok {
		if err := c.there(r.TargetShard()); err != nil {
			return err
		}
		c.shard = uint16(r.TargetShard())
	}
	if r, ok := c.req.(interface{ NamedShard() int64 }); ok {
		if err := c.there(r.NamedShard()); err != nil {
			return err
		}
	}
	c.scope.Space = table.Space{Shard: c.shard}
	return nil
}

// there refuses a shard that the store does not have.
func (c *call) there(shard int64) error {
	if shard > int64(c.identity.Shards) {
		return fault.New(fault.NotFound, "unknown_shard", "there is no shard %d; the last one is %d", shard, c.identity.Shards)
	}
	return nil
}

// authorize decides at the door by the catalog's policies; the state machine decides
// again by the shard's copy.
func (c *call) authorize(ctx context.Context) error {
	if c.h.Op.Scope == api.NodeScope { // what a node says of itself must not need the others
		k, err := c.find(ctx, c.who, here{c.Engine}.read, 0)
		if err != nil {
			return err
		}
		return allow(c, k.policy)
	}
	if c.cluster != nil && c.h.Run == nil && c.h.Parts == nil {
		p, known, err := c.policyAt(ctx, c.who, c.shard)
		if err == nil && known && allow(c, p) == nil {
			return nil
		}
	}
	p, err := c.policy(ctx, c.who)
	if err != nil {
		return err
	}
	return allow(c, p)
}

// allow decides a call by a policy, which is nil for a caller without one.
func allow(c *call, p *api.Principal) error {
	if err := access.Active(p, c.clock.millis()); err != nil {
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

// own makes the request the call's own, since the door may fill fields of it:
// the caller can send what it has again.
func (c *call) own() {
	r := reflect.New(c.h.Op.Request)
	r.Elem().Set(reflect.ValueOf(c.req).Elem())
	c.req = r.Interface()
}

// prepare gives the command its identity and its one encoding.
func (c *call) prepare() error {
	r, ok := c.req.(api.CommandRequest)
	if !ok {
		return fmt.Errorf("engine: the request of %s has no command id", c.h.Op.Name)
	}
	id, err := uuid.Parse(r.GetCommandID())
	if err != nil {
		return fault.Invalid("/commandId", "is not a UUID; make one (version 7 is best) and keep it for retries")
	}
	fingerprint, encoded, err := wire.Fingerprint(c.h.Op.Number, c.req)
	if err != nil {
		return fault.New(fault.Validation, "not_encodable", "the request cannot be encoded: %v", err)
	}
	if len(encoded) > limits.BatchBytes {
		return fault.New(fault.Validation, "request_too_large", "the request takes %d bytes; the limit is %d", len(encoded), limits.BatchBytes).
			With("limit", "%d", limits.BatchBytes)
	}
	if c.h.Prepare != nil {
		changed, err := c.h.Prepare(c.door(), c.req)
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
		ID: id, Tenant: c.who.tenant, Principal: c.who.principal,
		Partition: c.scope.Partition, Hash: c.scope.Space.Partition,
	}, fingerprint, encoded, c.req)
	return nil
}

func (e *Engine) door() *op.Door {
	return &op.Door{Tokens: e.tokens, Now: e.clock.millis(), Random: random}
}

// write proposes a command, unless a snapshot already gives the certain answer
// that nothing would happen.
func (c *call) write(ctx context.Context) (any, error) {
	if ctx.Err() != nil {
		return nil, commitlog.Unsubmitted()
	}
	if err := c.takesWrites(c.shard); err != nil {
		return nil, err
	}
	if c.h.Cheap != nil {
		resp, err := c.cheap(ctx)
		if resp != nil || err != nil {
			return resp, err
		}
	}
	if err := mayGo(ctx, c); err != nil {
		return nil, err
	}
	size := len(c.command.Request)
	if err := c.admission.enter(c.who.tenant, size, c.h.Urgent); err != nil {
		return nil, err
	}
	if c.h.Op.Scope == api.CatalogScope {
		ctx = context.WithoutCancel(ctx) // a change must reach every shard though its caller left
	}
	// The place is given back when the command is answered, not when its caller
	// leaves: until then it takes memory.
	out, err := c.log.Propose(ctx, c.shard, c.command, c.h.Urgent, func() { c.admission.leave(c.who.tenant, size) })
	if c.h.Op.Scope == api.CatalogScope {
		c.callers.forget()
		if err == nil {
			err = spread{c.Engine}.run(ctx)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case out.Err != nil:
		return nil, out.Err
	}
	if c.h.Finish != nil {
		if err := c.h.Finish(c.door(), c.req, out.Response); err != nil {
			return nil, err
		}
	}
	return out.Response, nil
}

// takesWrites refuses a write before it costs anything: the shard has stopped, or
// the node's clock is not to be trusted.
func (e *Engine) takesWrites(shard uint16) error {
	st := e.log.Status(shard)
	if st.Err != nil {
		return commitlog.Stopped(shard, st.Err)
	}
	if err := e.clock.trusted(); err != nil {
		return err
	}
	return e.clock.believe(st.Time)
}

// TakesWrites is nil on a node that can carry out what is written to a shard, if it
// leads it: the shard runs, and the clock is trusted.
func TakesWrites(e *Engine, shard uint16) error { return e.takesWrites(shard) }

// cheap asks the handler for a certain answer from a snapshot. Where a receipt
// is stored, that is the answer instead.
func (c *call) cheap(ctx context.Context) (resp any, err error) {
	if c.cluster != nil { // most commands have something to do, as this node sees by itself
		if resp, err := certain(ctx, c, here{c.Engine}.read); resp == nil && err == nil {
			return nil, nil
		}
	}
	return certain(ctx, c, c.read)
}

func certain(ctx context.Context, c *call, read func(context.Context, uint16, func(*kv.Snapshot) error) error) (resp any, err error) {
	err = read(ctx, c.shard, func(s *kv.Snapshot) error {
		if resp, err = c.h.Cheap(c.view(s), c.req); resp == nil && err == nil {
			return nil
		}
		known, rerr := machine.HasReceipt(s, c.shard, &c.command)
		if known || rerr != nil {
			resp, err = nil, rerr
		}
		return err
	})
	return resp, err
}

// mayGo refuses to let a node go that is needed, unless it was let go by this command
// already.
func mayGo(ctx context.Context, c *call) error {
	if c.cfg.MayGo == nil || c.h.Op.Scope != api.CatalogScope {
		return nil
	}
	refused := c.cfg.MayGo(c.req)
	if refused == nil {
		return nil
	}
	return c.read(ctx, c.shard, func(s *kv.Snapshot) error {
		if known, err := machine.HasReceipt(s, c.shard, &c.command); known || err != nil {
			return err
		}
		return refused
	})
}

func (c *call) view(s *kv.Snapshot) *op.View {
	v := &op.View{Scope: c.scope, Door: *c.door()}
	v.R, v.Now = s, c.clock.millis()
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
		f = fault.New(fault.Corruption, "damaged_bytes", "%v", err)
	default:
		e.logger.Error("operation failed", "error", err.Error())
		f = fault.New(fault.RecoveryRequired, "store_failed", "the store could not do this: %v", err)
	}
	out := *f
	out.CommandID = id
	return &out
}
