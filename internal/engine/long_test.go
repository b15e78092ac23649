package engine

import (
	"context"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
)

func TestALongQueryHasNoDeadlineAndEndsWithItsCallerOrTheStore(t *testing.T) {
	query := func(long bool) *call {
		return &call{Engine: &Engine{closing: make(chan struct{})}, h: &op.Handler{Op: &api.Operation{Long: long}}}
	}
	c := query(false)
	ctx, cancel := c.bounded(t.Context())
	if at, ok := ctx.Deadline(); !ok || time.Until(at) > limits.QuerySeconds*time.Second {
		t.Errorf("a query ends at %v, %v", at, ok)
	}
	cancel()

	c = query(true)
	ctx, cancel = c.bounded(t.Context())
	if at, ok := ctx.Deadline(); ok {
		t.Errorf("a long query ends at %v", at)
	}
	close(c.closing)
	<-ctx.Done()
	if f := fault.From(context.Cause(ctx)); f == nil || f.Code != fault.OwnershipLost {
		t.Errorf("the store closes, and it ends with %v", context.Cause(ctx))
	}
	cancel()

	caller, leave := context.WithCancel(t.Context())
	ctx, cancel = query(true).bounded(caller)
	leave()
	<-ctx.Done()
	if err := context.Cause(ctx); err != context.Canceled {
		t.Errorf("the caller leaves, and it ends with %v", err)
	}
	cancel()
}
