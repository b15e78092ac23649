package worker

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// receiver claims deliveries and starts them. It asks for as many as can start,
// never for more.
type receiver struct {
	*run
	free     int // slots it has taken and not given to a delivery
	req      request
	failures int  // in a row
	paused   bool // the source was, when it was asked last
}

// request is one receive, with its repetitions.
type request struct {
	id      string
	n       int       // how many deliveries it asks for
	sent    time.Time // when it was sent first: its leases count from here
	unknown bool      // an attempt may have claimed something
}

// receive goes on until ctx ends or the store will not deliver any more.
func (r *run) receive(ctx context.Context) error {
	v := &receiver{run: r}
	for {
		if v.takeSlots(ctx); ctx.Err() != nil {
			v.reclaim()
			return nil
		}
		if v.req.id == "" || v.over() {
			v.req = request{id: api.NewCommandID(), n: min(v.free, callItems), sent: time.Now()}
		}
		began := time.Now()
		parcels, err := v.ask(ctx)
		switch {
		case err == nil:
			v.got(ctx, parcels)
			if len(parcels) == 0 && time.Since(began) < r.wait()/2 {
				pause(ctx, firstPause) // the store did not wait, so this does
			}
		case ctx.Err() != nil: // what became of it is asked above
		default:
			wait, fatal := v.failed(err)
			if fatal {
				return err
			}
			pause(ctx, wait)
		}
	}
}

// takeSlots waits for a slot and takes all there are.
func (v *receiver) takeSlots(ctx context.Context) {
	if v.free == 0 {
		select {
		case <-v.slots:
			v.free++
		case <-ctx.Done():
			return
		}
	}
	runtime.Gosched() // handlers that end right now make one receive of many
	for v.free < callItems {
		select {
		case <-v.slots:
			v.free++
		default:
			return
		}
	}
}

// over says that leases that count from the sending of the request have ended:
// whatever another attempt gave could not start.
func (v *receiver) over() bool { return time.Since(v.req.sent) >= v.Lease }

// ask sends the request once. It waits no longer than what comes can start.
func (v *receiver) ask(ctx context.Context) ([]parcel, error) {
	ctx, cancel := context.WithTimeout(ctx, min(v.wait()+v.attempt(), v.Lease-time.Since(v.req.sent)))
	defer cancel()
	parcels, err := v.source.receive(ctx, v.req.id, v.req.n)
	v.req.unknown = v.req.unknown || fault.CodeOf(err) == fault.UnknownWriteOutcome
	return parcels, err
}

// got starts what came. What cannot start is given back: it came too late, or
// the run is stopping.
func (v *receiver) got(ctx context.Context, parcels []parcel) {
	for i := range parcels {
		p := &parcels[i]
		until := v.req.sent.Add(p.lease)
		if i < v.req.n && ctx.Err() == nil && time.Now().Before(until) {
			v.free--
			v.start(p, until)
			continue
		}
		v.calls.Go(func() { v.giveBack(p) })
	}
	v.req, v.failures = request{}, 0
	if v.paused {
		v.log.Info("delivery goes on")
		v.paused = false
	}
}

// giveBack releases a delivery that was not started. Where its lease has ended
// the store refuses that, and has counted it as lost.
func (r *run) giveBack(p *parcel) {
	err := r.finish(api.CompleteItem{Token: p.token, Action: api.ActionRelease}, time.Now().Add(goodbye))
	r.log.Info("a delivery that could not start was given back", "id", p.id, "attempt", p.attempt, "released", err == nil)
}

// failed decides what the error of a receive means: how long to wait before the
// next one, or that there is no sense in one.
func (v *receiver) failed(err error) (wait time.Duration, fatal bool) {
	f := fault.From(err)
	switch {
	case f == nil:
		return 0, true
	case f.Code == fault.DispatchPaused:
		if !v.paused {
			v.log.Info("delivery is paused; the worker waits", "reason", f.Reason)
			v.paused = true
		}
		v.nextRequest()
		return max(pausedPause, time.Duration(f.RetryAfterMillis)*time.Millisecond) + rand.N(pausedPause/4), false
	case v.req.unknown && leaseGone(f):
		// It had claimed something, and the leases ended before that was known.
		v.trouble("a receive could not be repeated; its deliveries go to another worker", nil, err)
		v.req.unknown = false
	case repeatable(f) || f.Retry == fault.RetryNewID:
		v.trouble("receive failed and will be tried again", nil, err)
		v.req.unknown = v.req.unknown && !f.Recorded
	default:
		return 0, true
	}
	v.nextRequest()
	v.failures++
	return backoff(v.failures-1, f), false
}

// nextRequest makes room for another request, unless an attempt of this one may
// have claimed something: the same id finds that, until the leases end.
func (v *receiver) nextRequest() {
	if !v.req.unknown || v.over() {
		v.req = request{}
	}
}

// reclaimTime is how long a run that stops asks for what it may have claimed.
const reclaimTime = time.Second

// reclaim finds out what a receive that was cut off had claimed, and gives it
// back: nobody else would get it before its leases end.
func (v *receiver) reclaim() {
	if !v.req.unknown {
		return
	}
	ctx, cancel := context.WithTimeout(v.alive, reclaimTime)
	defer cancel()
	for n := 0; ctx.Err() == nil; n++ {
		parcels, err := v.source.receive(ctx, v.req.id, v.req.n)
		if err == nil {
			for i := range parcels {
				v.calls.Go(func() { v.giveBack(&parcels[i]) })
			}
			return
		}
		f := fault.From(err)
		if !repeatable(f) || !pause(ctx, backoff(n, f)) {
			return
		}
	}
}
