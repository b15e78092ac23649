package httpgw

import (
	"context"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/engine"
)

// Caller is an authenticated principal. It is opaque here.
type Caller = *engine.Caller

// Door is what a gateway needs of the engine. Errors are *fault.Error.
type Door interface {
	// Authenticate finds the principal of an API key.
	Authenticate(ctx context.Context, apiKey string) (Caller, error)
	// Do evaluates one operation for the caller. req points to the operation's
	// request type, the response to its response type. It ends with ctx.
	Do(ctx context.Context, c Caller, o *api.Operation, req any) (resp any, err error)
	// Ready says why the store accepts no work; nil when it does.
	Ready() error
}
