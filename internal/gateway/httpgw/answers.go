package httpgw

import (
	"context"
	"sync"
)

// answers bounds the bytes of answers that are held until their callers have read
// them: of a server, half of them for one tenant, or of one session. Who asks for many
// bytes takes room before anything is read or claimed, and waits for it in line with
// those of its tenant.
type answers struct {
	max, share int // share is what one tenant may hold

	mu      sync.Mutex
	held    int
	tenants map[string]int
	lines   map[string][]*asker // by tenant; those in front come first
}

// asker waits for room.
type asker struct {
	bytes int
	comes chan struct{} // closed when it has room
}

// fits says that bytes more are within the bounds. The lock is held. One who holds
// nothing is never kept out by its own size.
func (a *answers) fits(tenant string, bytes, reserve int) bool {
	own := a.tenants[tenant]
	return (a.held == 0 || a.held+bytes <= a.max+reserve) && (own == 0 || own+bytes <= a.share+reserve)
}

// hold counts bytes. The lock is held.
func (a *answers) hold(tenant string, bytes int) {
	if a.tenants == nil {
		a.tenants = map[string]int{}
	}
	a.held += bytes
	if a.tenants[tenant] += bytes; a.tenants[tenant] == 0 {
		delete(a.tenants, tenant)
	}
}

// take waits for room until ctx ends; the error is that of ctx. give must be called
// after it.
func (a *answers) take(ctx context.Context, tenant string, bytes int) error {
	a.mu.Lock()
	if len(a.lines[tenant]) == 0 && a.fits(tenant, bytes, 0) {
		a.hold(tenant, bytes)
		a.mu.Unlock()
		return nil
	}
	w := &asker{bytes, make(chan struct{})}
	if a.lines == nil {
		a.lines = map[string][]*asker{}
	}
	a.lines[tenant] = append(a.lines[tenant], w)
	a.mu.Unlock()
	select {
	case <-w.comes:
		return nil
	case <-ctx.Done():
		return a.leave(ctx, tenant, w)
	}
}

// leave gives up waiting.
func (a *answers) leave(ctx context.Context, tenant string, w *asker) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	line := a.lines[tenant]
	for i := range line {
		if line[i] == w {
			a.lines[tenant] = append(line[:i:i], line[i+1:]...)
			a.admit(tenant) // whoever stood behind a larger one
			return ctx.Err()
		}
	}
	return nil // it has come meanwhile
}

// more makes what is held larger or smaller at once; false where there is no room.
func (a *answers) more(tenant string, bytes, reserve int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if bytes > 0 && !a.fits(tenant, bytes, reserve) {
		return false
	}
	a.change(tenant, bytes)
	return true
}

// give gives room back, or with negative bytes takes it whatever the bounds say.
func (a *answers) give(tenant string, bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.change(tenant, -bytes)
}

// change counts, and lets those in line have what has become free. The lock is held.
func (a *answers) change(tenant string, bytes int) {
	a.hold(tenant, bytes)
	if bytes >= 0 {
		return
	}
	a.admit(tenant)
	for other := range a.lines { // in any order, so that none is always first
		a.admit(other)
	}
}

// admit gives room to those of a tenant who are in front. The lock is held.
func (a *answers) admit(tenant string) {
	line := a.lines[tenant]
	for len(line) > 0 && a.fits(tenant, line[0].bytes, 0) {
		a.hold(tenant, line[0].bytes)
		close(line[0].comes)
		line = line[1:]
	}
	if len(line) == 0 {
		delete(a.lines, tenant)
		return
	}
	a.lines[tenant] = line
}

func (a *answers) bytes() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}
