package engine

import (
	"sync"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/limits"
)

// admission bounds the commands that wait for the log, by count and bytes, half
// of it for any one tenant, with a reserve for the commands that free things.
type admission struct {
	mu      sync.Mutex
	count   int
	bytes   int
	tenants map[string]share
}

type share struct{ count, bytes int }

// enter admits a command or refuses it at once. leave must be called after it.
func (a *admission) enter(tenant string, bytes int, urgent bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.check(tenant, bytes, urgent); err != nil {
		return err
	}
	if a.tenants == nil {
		a.tenants = map[string]share{}
	}
	s := a.tenants[tenant]
	a.count, a.bytes = a.count+1, a.bytes+bytes
	a.tenants[tenant] = share{s.count + 1, s.bytes + bytes}
	return nil
}

// refuses says whether not even the smallest command would be admitted, before
// work is spent on it.
func (a *admission) refuses(tenant string, urgent bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.check(tenant, 1, urgent)
}

// check says whether a command fits. The lock is held.
func (a *admission) check(tenant string, bytes int, urgent bool) error {
	maxCount, maxBytes := limits.AdmittedCommands, limits.AdmittedBytes
	ownCount, ownBytes := maxCount/2, maxBytes/2
	if urgent {
		maxCount, maxBytes = maxCount+limits.AdmissionReserve, maxBytes+limits.AdmissionReserveBytes
		ownCount, ownBytes = ownCount+limits.AdmissionReserve, ownBytes+limits.AdmissionReserveBytes
	}
	s := a.tenants[tenant]
	switch {
	case a.count+1 > maxCount:
		return Busy("admission_commands", "the node has %d commands waiting, its limit", a.count)
	case a.bytes+bytes > maxBytes:
		return Busy("admission_bytes", "the node has %d bytes of commands waiting; its limit is %d", a.bytes, maxBytes)
	case s.count+1 > ownCount:
		return Busy("admission_tenant", "the tenant has %d commands waiting, half of what the node takes", s.count)
	case s.bytes+bytes > ownBytes:
		return Busy("admission_tenant", "the tenant has %d bytes of commands waiting; half of what the node takes is %d", s.bytes, ownBytes)
	}
	return nil
}

// Busy is the refusal of what a node cannot take just now; a moment later it may.
func Busy(reason, format string, args ...any) *fault.Error {
	e := fault.New(fault.ResourceExhausted, reason, format, args...).WithRetry(fault.RetrySameID)
	e.RetryAfterMillis = 50
	return e
}

func (a *admission) leave(tenant string, bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count, a.bytes = a.count-1, a.bytes-bytes
	s := a.tenants[tenant]
	if s.count == 1 {
		delete(a.tenants, tenant)
		return
	}
	a.tenants[tenant] = share{s.count - 1, s.bytes - bytes}
}
