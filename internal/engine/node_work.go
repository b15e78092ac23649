package engine

import (
	"context"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/resource/access"
)

// Hold counts work of the node itself, such as a backup, as a call under way:
// Close waits for release, and held ends when Close begins. Errors: OwnershipLost
// (reason store_closed).
func Hold(ctx context.Context, e *Engine) (held context.Context, release func(), err error) {
	if err := e.enter(); err != nil {
		return nil, nil, err
	}
	held, end := untilClosing(ctx, e)
	return held, func() {
		end()
		e.calls.Done()
	}, nil
}

// untilClosing ends with ctx, with end, or when Close begins; the cause is then
// OwnershipLost (reason store_closed). end must be called, once.
func untilClosing(ctx context.Context, e *Engine) (held context.Context, end func()) {
	held, cancel := context.WithCancelCause(ctx)
	stop := make(chan struct{})
	go func() {
		select {
		case <-e.closing:
			cancel(fault.New(fault.OwnershipLost, "store_closed", "the store is closing; what was under way was ended"))
		case <-stop:
		}
	}()
	return held, func() { close(stop); cancel(nil) }
}

// Administrator refuses a caller who is not an administrator of the whole store,
// whatever else the caller may do. Errors are *fault.Error.
func Administrator(ctx context.Context, e *Engine, who *Caller) error {
	if err := e.enter(); err != nil {
		return e.public(err, "")
	}
	defer e.calls.Done()
	p, err := e.policy(ctx, who)
	if err == nil {
		err = access.Active(p, e.clock.millis())
	}
	switch {
	case err != nil:
		return e.public(err, "")
	case !p.Administrator:
		return fault.New(fault.PermissionDenied, "administrator_only",
			"this is for administrators of the whole store: it reaches the data of every tenant and the hashes of every key")
	}
	return nil
}
