package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/keyload/keyload/fault"
)

// places bounds how many of something there are, half of them for any one tenant.
// It has no lock of its own.
type places struct {
	max     int
	count   int
	tenants map[string]int
}

func (p *places) free(tenant string) bool {
	return p.count < p.max && p.tenants[tenant] < (p.max+1)/2
}

func (p *places) enter(tenant string) {
	if p.tenants == nil {
		p.tenants = map[string]int{}
	}
	p.count++
	p.tenants[tenant]++
}

func (p *places) leave(tenant string) {
	p.count--
	if p.tenants[tenant]--; p.tenants[tenant] == 0 {
		delete(p.tenants, tenant)
	}
}

// seats are places that are taken or refused at once.
type seats struct {
	mu sync.Mutex
	places
}

// take takes a place; leave must be called after it.
func (s *seats) take(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.free(tenant) {
		return false
	}
	s.enter(tenant)
	return true
}

func (s *seats) leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.leave(tenant)
}

func (s *seats) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// turns lets some run at once and others wait for their turn; whoever is not even
// allowed to wait is refused at once.
type turns struct {
	mu      sync.Mutex
	running places
	waiting places
	line    []*turn // who waits, in their order
}

type turn struct {
	tenant string
	comes  chan struct{} // closed when it has come
}

// take returns when it is the caller's turn; done must be called after it.
func (t *turns) take(ctx context.Context, tenant string) error {
	t.mu.Lock()
	if t.running.free(tenant) {
		t.running.enter(tenant)
		t.mu.Unlock()
		return nil
	}
	if !t.waiting.free(tenant) {
		defer t.mu.Unlock()
		return Busy("admission_queries", "%d queries run and %d wait, as many as the node takes or half of that from one tenant", t.running.count, t.waiting.count)
	}
	w := &turn{tenant, make(chan struct{})}
	t.waiting.enter(tenant)
	t.line = append(t.line, w)
	t.mu.Unlock()
	select {
	case <-w.comes:
		return nil
	case <-ctx.Done():
		return t.giveUp(ctx, w)
	}
}

func (t *turns) giveUp(ctx context.Context, w *turn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.line, w)
	if i < 0 { // it has come meanwhile
		return nil
	}
	t.line = slices.Delete(t.line, i, i+1)
	t.waiting.leave(w.tenant)
	if ctx.Err() == context.DeadlineExceeded {
		return Busy("admission_queries", "the query waited for its turn as long as a query may take; %d run", t.running.count)
	}
	return fault.New(fault.Cancelled, "cancelled", "the caller stopped waiting")
}

// done gives the turn to the first who waits and whose tenant has one left.
func (t *turns) done(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running.leave(tenant)
	for i, w := range t.line {
		if t.running.free(w.tenant) {
			t.line = slices.Delete(t.line, i, i+1)
			t.waiting.leave(w.tenant)
			t.running.enter(w.tenant)
			close(w.comes)
			return
		}
	}
}

func (t *turns) counts() (running, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running.count, t.waiting.count
}
