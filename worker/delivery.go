package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// delivery is one delivery that is worked on. What the keeper guards stands in
// lease.
type delivery struct {
	*parcel
	ctx    context.Context // of the handler
	cancel context.CancelCauseFunc
	span   trace.Span
	tx     Tx
	result error // of the handler
	lease  lease
}

// start gives a delivery to its handler. The caller holds a slot for it.
func (r *run) start(p *parcel, until time.Time) {
	h := &delivery{parcel: p, result: errExit}
	h.ctx, h.span = r.subject.begin(r.alive, r.Tracing, p)
	h.ctx, h.cancel = context.WithCancelCause(h.ctx)
	h.lease = lease{token: p.token, until: until, renewAt: nextRenewal(until)}
	if r.HandlerTimeout > 0 {
		h.lease.stopAt = time.Now().Add(r.HandlerTimeout)
	}
	r.hold(h)
	r.active.Go(func() {
		defer func() { r.slots <- struct{}{} }()
		defer h.cancel(nil)
		defer h.span.End()
		defer r.settle(h) // however the handler ends, even by ending its goroutine
		r.handle(h)
	})
}

// handle calls the handler.
func (r *run) handle(h *delivery) {
	ctx := h.ctx
	if r.HandlerTimeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.HandlerTimeout, ErrTimeout)
		defer stop()
	}
	defer func() {
		if v := recover(); v != nil {
			h.result = &PanicError{v, debug.Stack()}
		}
	}()
	err := h.parcel.handle(ctx, &h.tx)
	if err != nil && context.Cause(ctx) == ErrTimeout {
		err = fmt.Errorf("%w (after %s): %w", ErrTimeout, r.HandlerTimeout, err)
	}
	h.result = err
}

// settle makes the handler's result known to the store.
func (r *run) settle(h *delivery) {
	v := verdictOf(h.result)
	stopped := context.Cause(h.ctx) == ErrDraining && h.result != nil && v == nil && !isPanic(h.result)
	token, until, lost := r.release(h)
	if lost != nil {
		r.trouble("the lease was lost; the handler's result is not committed", h, lost)
		return
	}
	ctx, cancel := context.WithDeadline(r.alive, until)
	defer cancel()
	failure := h.result
	if failure == nil {
		if failure = r.commit(ctx, h, token, until); failure == nil {
			return
		}
		f := fault.From(failure)
		if leaseGone(f) {
			failure = fmt.Errorf("%w: %w", ErrLeaseLost, failure)
		}
		if leaseGone(f) || repeatable(f) {
			r.trouble("the handler's result could not be committed", h, failure)
			return
		}
		failure = fmt.Errorf("the store refused the handler's effects: %w", failure)
	}
	item := api.CompleteItem{Token: token, Action: api.ActionRelease}
	if stopped {
		r.log.Info("the worker stops; a delivery is given back", "id", h.id, "attempt", h.attempt)
		h.span.AddEvent("given back")
	} else {
		item = refusal(token, failure, v)
		r.report(h, failure)
	}
	if err := r.finish(item, until); err != nil {
		r.trouble("a delivery could not be given back; it goes to another worker when its lease ends", h, err)
	}
}

// commit acknowledges, with the effects and the inbox record if there are to be
// any. The command has one id for all its repetitions, so that it happens once.
func (r *run) commit(ctx context.Context, h *delivery, token string, until time.Time) error {
	effects := slices.Clone(h.tx.effects)
	if len(effects) == 0 && r.NoInbox {
		return r.finish(api.CompleteItem{Token: token, Action: api.ActionAck}, until)
	}
	id := api.NewCommandID()
	return r.repeat(ctx, func(ctx context.Context) error { return r.source.process(ctx, id, token, effects) })
}

// refusal is the nack of a failed attempt.
func refusal(token string, failure error, v *verdict) api.CompleteItem {
	item := api.CompleteItem{Token: token, Action: api.ActionNack, Failure: failureText(failure)}
	switch {
	case v == nil:
	case v.terminal:
		item.Terminal = true
	case v.after != nil:
		ms := v.after.Milliseconds()
		item.DelayMillis = &ms
	}
	return item
}

func (r *run) report(h *delivery, failure error) {
	if p := (*PanicError)(nil); errors.As(failure, &p) {
		r.log.Error("the handler panicked", "id", h.id, "attempt", h.attempt, "stack", string(p.Stack))
	}
	r.trouble("an attempt failed", h, failure)
}

func isPanic(err error) bool {
	var p *PanicError
	return errors.As(err, &p) || errors.Is(err, errExit)
}
