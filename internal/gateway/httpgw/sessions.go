package httpgw

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/engine"
)

// sessions are those that are open: http.Server forgets a connection that was
// upgraded.
type sessions struct {
	gauge prometheus.Gauge

	mu    sync.Mutex
	ended sync.Cond // a session ended
	open  map[*session]bool
	max   int
	taken int  // open, or about to be
	shut  bool // no session is taken any more
}

func (o *sessions) init(gauge prometheus.Gauge, max int) {
	o.gauge, o.open, o.ended.L, o.max = gauge, map[*session]bool{}, &o.mu, max
}

// take makes room for a session, or refuses it. give must be called after it.
func (o *sessions) take() *fault.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken >= o.max {
		return engine.Busy("sessions", "the server has %d sessions, its limit; close one, or send calls over fewer", o.taken).With("limit", "%d", o.max)
	}
	o.taken++
	return nil
}

func (o *sessions) give() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken--
}

// join counts a session; false when the gateway drains.
func (o *sessions) join(s *session) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut {
		return false
	}
	o.open[s] = true
	o.gauge.Inc()
	return true
}

func (o *sessions) part(s *session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, s)
	o.gauge.Dec()
	o.ended.Broadcast()
}

func (o *sessions) draining() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shut
}

// drain refuses new sessions, and new calls on those that are open.
func (o *sessions) drain() {
	o.mu.Lock()
	o.shut = true
	open := slices.Collect(maps.Keys(o.open))
	o.mu.Unlock()
	for _, s := range open {
		s.drain()
	}
}

// wait returns when no session is open, or ctx ends.
func (o *sessions) wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ended.Broadcast()
	})
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.open) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.ended.Wait()
	}
	return nil
}

// close cuts off what is left.
func (o *sessions) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for s := range o.open {
		_ = s.conn.Close()
	}
}
