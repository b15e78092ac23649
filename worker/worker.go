package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// Worker runs a handler over the deliveries of one lane or group. Make it with
// Queue or Group.
type Worker struct {
	options Options
	bad     error
	name    string
	subject subject
	open    func(Options) source
}

// Queue makes a worker of a lane. d is an embedded store, a client, or a
// narrowed view of either; its principal needs queues.consume on the queue and
// what the effects need.
//
// What the handler returns decides about the message: nil commits what it added
// to tx and acknowledges; an error fails the attempt with the error's text, its
// first 1,024 bytes, and the queue's policy says when it is tried again; Retry
// and Terminal choose otherwise. A panic fails the attempt too. The handler must
// return when its context ends.
func Queue(d api.Doer, l api.LaneRef, handle func(ctx context.Context, tx *Tx, m *Message) error, o Options) *Worker {
	api.ApplyDefaults(&l)
	o = o.complete(l.Queue)
	return &Worker{
		options: o, bad: o.check(handle != nil, false), name: l.String(),
		subject: subject{resource: l.Queue, partition: l.Partition.String()},
		open:    func(o Options) source { return &lane{d, l, handle, o} },
	}
}

// Group makes a worker of a subscription group. d is an embedded store, a
// client, or a narrowed view of either; its principal needs groups.consume on
// the source and what the effects need.
//
// What the handler returns decides as with Queue, by the policy of the group.
// The inbox records events of the source, not of the group: two groups whose
// handlers act independently have different handler scopes, and so different
// names by default.
func Group(d api.Doer, g api.GroupRef, handle func(ctx context.Context, tx *Tx, e *Event) error, o Options) *Worker {
	api.ApplyDefaults(&g)
	o = o.complete(g.Group)
	return &Worker{
		options: o, bad: o.check(handle != nil, true), name: g.String(),
		subject: subject{resource: g.Source.Resource, partition: g.Source.Partition.String(), group: g.Group},
		open:    func(o Options) source { return &group{d, g, handle, o} },
	}
}

// Run receives and handles until ctx ends; then it claims nothing more, waits
// for its handlers as long as Options.DrainTimeout says, gives back what they
// did not finish, and returns nil. It returns the error of a store that will not
// deliver to this worker: PermissionDenied, NotFound, Validation and their like,
// after it has drained in the same way. Everything else it goes on after:
// refusals that pass, lost connections, a paused queue.
//
// No goroutine of the worker outlives Run; a handler that does not return when
// its context ends holds Run up. Several Runs of one worker share nothing.
func (w *Worker) Run(ctx context.Context) error {
	if w.bad != nil {
		return w.bad
	}
	o := w.options
	if o.SessionID == "" {
		o.SessionID = api.NewCommandID()
	}
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	r := &run{
		Options: o, subject: &w.subject, source: w.open(o), log: o.Logger.With("source", w.name),
		slots: make(chan struct{}, o.Concurrency), alive: alive, end: end,
	}
	r.held, r.kick = map[*delivery]struct{}{}, make(chan struct{}, 1)
	for range o.Concurrency {
		r.slots <- struct{}{}
	}
	quit := make(chan struct{})
	r.calls.Go(func() { r.keep(quit) })
	err := r.receive(ctx)
	r.drain()
	close(quit)
	r.calls.Wait()
	return err
}

// run is one Run of a worker.
type run struct {
	Options
	subject *subject
	source  source
	log     *slog.Logger
	slots   chan struct{}   // holds a value for every handler that may start
	alive   context.Context // of handlers, and of calls for deliveries
	end     context.CancelFunc
	active  sync.WaitGroup // deliveries
	calls   sync.WaitGroup // every other goroutine of the run
	keeper
	completer
}

// goodbye is how long the calls of the last deliveries may take once their
// handlers were told to end.
const goodbye = 5 * time.Second

// drain waits for the deliveries, first patiently, then not.
func (r *run) drain() {
	idle := make(chan struct{})
	r.calls.Go(func() { r.active.Wait(); close(idle) })
	patience := time.NewTimer(max(0, r.DrainTimeout))
	defer patience.Stop()
	select {
	case <-idle:
		return
	case <-patience.C:
	}
	r.cancelAll(ErrDraining)
	last := time.NewTimer(goodbye)
	defer last.Stop()
	select {
	case <-idle:
	case <-last.C:
		r.end()
		<-idle
	}
}

// trouble tells about an error that the run goes on after.
func (r *run) trouble(what string, h *delivery, err error) {
	attrs := []any{"error", err.Error()}
	if f := fault.From(err); f != nil {
		attrs = append(attrs, "code", string(f.Code), "reason", f.Reason)
	}
	if h != nil {
		attrs = append(attrs, "id", h.id, "attempt", h.attempt)
		h.failed(what, err)
		err = fmt.Errorf("%s, attempt %d: %w", h.id, h.attempt, err)
	}
	r.log.Warn(what, attrs...)
	if r.OnError != nil {
		r.OnError(err)
	}
}
