package worker

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyload/keyload/fault"
)

// Options of a worker. The zero value is the safe default.
type Options struct {
	// Concurrency is how many handlers run at once, 1 to 4,096; 0 is 16. No more
	// deliveries than that are held.
	Concurrency int
	// Lease is how long a delivery is held before it is renewed or ends, whole
	// seconds from 1 s to 12 h; 0 is 30 s. The queue or group may allow less. It
	// is renewed for as long as the handler works, so it says how soon another
	// worker takes over from one that died, not how long a handler may take.
	Lease time.Duration
	// HandlerTimeout ends the context of a handler, with ErrTimeout as its cause;
	// 0 is never. The lease is not renewed after that.
	HandlerTimeout time.Duration
	// DrainTimeout is how long Run waits for handlers when it stops; 0 is 20 s, a
	// negative one does not wait. Then their contexts end, with ErrDraining as
	// their cause.
	DrainTimeout time.Duration
	// HandlerScope names the handler in the inbox: each scope processes a delivery
	// once. Empty is the name of the queue or group. Workers of one queue that do
	// the same work have the same scope.
	HandlerScope string
	// ExecutionGeneration is raised to process deliveries again on purpose; 0 is 1.
	ExecutionGeneration uint64
	// NoInbox acknowledges a handler that added nothing to its Tx without an inbox
	// record, which costs less. Handlers that added something are recorded always.
	NoInbox bool
	// SessionID is what inspection shows as the holder of the leases; empty is a
	// new one for every Run. It is a name for people: leases do not depend on it.
	SessionID string
	// ExpectedGeneration, of a group, ends Run with RevisionConflict (reason
	// group_generation) when the group is at another generation: a handler
	// written for one filter gets nothing of another. 0 takes any.
	ExpectedGeneration uint64
	// Tracing makes OpenTelemetry spans, one for each attempt, linked to the
	// producer's through the headers traceparent and tracestate of the message or
	// event; nil makes none. The handler's context carries the span.
	//
	// Do not write that span into effects: it differs with every attempt, and equal
	// messages must lead to equal effects. Hand on the headers that came, if any.
	Tracing trace.TracerProvider
	// Logger gets what the worker has to say; nil discards it. It never gets a
	// payload or a token.
	Logger *slog.Logger
	// OnError is called with every error that Run goes on after: failed handlers,
	// lost leases, a store that could not be reached. It is called from several
	// goroutines at once and must return soon.
	OnError func(error)
}

const (
	defaultConcurrency = 16
	maxConcurrency     = 4096
	defaultLease       = 30 * time.Second
	minLease           = time.Second
	maxLease           = 12 * time.Hour
	defaultDrain       = 20 * time.Second
	// longestWait is the longest a receive may wait.
	longestWait = 20 * time.Second
)

// complete fills in the defaults.
func (o Options) complete(name string) Options {
	if o.Concurrency == 0 {
		o.Concurrency = defaultConcurrency
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = defaultDrain
	}
	if o.HandlerScope == "" {
		o.HandlerScope = name
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// check refuses options out of bounds. What the store can say better is left to
// it.
func (o *Options) check(handler, ofGroup bool) error {
	switch {
	case !handler:
		return fault.Invalid("/handler", "is required")
	case o.Concurrency < 1 || o.Concurrency > maxConcurrency:
		return fault.Invalid("/concurrency", "must be 1 to %d, or 0 for %d", maxConcurrency, defaultConcurrency)
	case o.Lease < minLease || o.Lease > maxLease || o.Lease%time.Second != 0:
		return fault.Invalid("/lease", "must be whole seconds from %s to %s, or 0 for %s", minLease, maxLease, defaultLease)
	case o.HandlerTimeout < 0:
		return fault.Invalid("/handlerTimeout", "must not be negative; 0 sets no timeout")
	case o.ExpectedGeneration != 0 && !ofGroup:
		return fault.Invalid("/expectedGeneration", "is only used with a group")
	}
	return nil
}

// wait is how long a receive waits for a delivery. A lease counts from the
// sending of its request, so the wait takes away from it: a third at most.
func (o *Options) wait() time.Duration { return min(longestWait, o.Lease/3) }

// attempt is how long one call may take before it is sent again with the same
// command id.
func (o *Options) attempt() time.Duration { return min(10*time.Second, o.Lease/5) }
