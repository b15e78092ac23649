package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/keyload/keyload/fault"
)

const (
	idleConnections = 64
	idleTime        = 90 * time.Second
	dialTime        = 10 * time.Second
	aliveTime       = 30 * time.Second
	firstPause      = 10 * time.Millisecond
	longestPause    = 2 * time.Second
)

// retry repeats a request, on the server or on the next, while the error says that
// the same request may be repeated.
func (c *Client) retry(ctx context.Context, r request, resp any) error {
	unknown := false // an earlier attempt may have happened
	for n := 1; ; n++ {
		s := c.current()
		err := s.once(ctx, r, resp)
		if err == nil {
			return nil
		}
		f := fault.From(err)
		unknown = unknown || f.Code == fault.UnknownWriteOutcome
		again := mayRepeat(f)
		if ctx.Err() == nil && elsewhere(f) {
			c.leave(s)
			// What only a person can put right on one server is tried once on each.
			again = again || n < len(c.servers)
		}
		if !again || n >= c.attempts*len(c.servers) || !c.pause(ctx, n, f) {
			return final(ctx, err, r, unknown)
		}
	}
}

// mayRepeat says whether the same request may help, without anybody's doing.
func mayRepeat(f *fault.Error) bool {
	switch f.Code {
	case fault.DispatchPaused, fault.RecoveryRequired:
		return false // a person ends these
	}
	return f.Retry == fault.RetrySameID
}

// pause waits before the attempt after the n-th: hardly where the next server is
// there to be asked, longer with every time that all were. It is false when ctx ends
// first, or the client is closed.
func (c *Client) pause(ctx context.Context, n int, f *fault.Error) bool {
	d := firstPause
	if n%len(c.servers) == 0 || !elsewhere(f) {
		d = min(firstPause<<min((n-1)/len(c.servers), 16), longestPause)
	}
	d = d/2 + rand.N(d/2+1) // half of it at least, so that clients do not come back together
	d = max(d, time.Duration(f.RetryAfterMillis)*time.Millisecond)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-c.closing.Done():
	}
	return false
}

// final is the error a call ends with.
//
// Where an earlier attempt may have happened, a refusal that was not recorded
// says nothing about it: the outcome stays unknown. Two refusals do say it: a
// receipt is only judged by its leases when there is one.
func final(ctx context.Context, err error, r request, unknown bool) error {
	f := fault.From(err)
	if unknown && f.Code != fault.UnknownWriteOutcome && !f.Recorded && f.Code != fault.LeaseExpired && f.Code != fault.StaleLease {
		f = fault.New(fault.UnknownWriteOutcome, "retries_ended",
			"an attempt may have happened and the last one was refused; repeat it with the same command id, or ask commands.outcome").
			With("lastCode", "%s", f.Code).With("lastReason", "%s", f.Reason)
	}
	if f.CommandID == "" && r.id != "" {
		named := *f
		named.CommandID = r.id
		f = &named
	}
	if ctx.Err() != nil && (f.Code == fault.UnknownWriteOutcome || f.Code == fault.Cancelled) {
		return &endedError{f, ctx.Err()}
	}
	return f
}

// endedError is an error of a call whose context ended: it matches both.
type endedError struct {
	fault *fault.Error
	cause error
}

// Error is the text of the fault.
func (e *endedError) Error() string { return e.fault.Error() }

// Unwrap gives the fault and the context's error.
func (e *endedError) Unwrap() []error { return []error{e.fault, e.cause} }

// notSent is the error of a call whose context ended before it was sent.
func notSent(ctx context.Context) *fault.Error {
	why := "was cancelled"
	if ctx.Err() == context.DeadlineExceeded {
		why = "ran out of time"
	}
	return fault.New(fault.Cancelled, "cancelled", "the call %s before it was sent; nothing was done", why)
}

// unreachable is the error of a call that could not be sent.
func unreachable(what string) *fault.Error {
	return fault.New(fault.OwnershipLost, "unreachable", "the server cannot be reached (%s); nothing was sent", what)
}

// lost is the error of a call that was sent and not answered.
func lost(r request, reason, what string) *fault.Error {
	if r.id != "" {
		return fault.New(fault.UnknownWriteOutcome, reason, "%s; the write may have happened", what)
	}
	return fault.New(fault.OwnershipLost, reason, "%s; repeat the read", what)
}

// gone is the error of a call whose caller stopped waiting for the answer.
func gone(r request) *fault.Error {
	if r.id == "" {
		return fault.New(fault.Cancelled, "cancelled", "the call ended before its answer came")
	}
	return fault.New(fault.UnknownWriteOutcome, "cancelled", "the call ended before its answer came; the write may have happened")
}
