package worker

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/keyload/keyload/fault"
)

// Causes of the end of a handler's context; see context.Cause.
var (
	// ErrLeaseLost: the lease ended or was refused, and another worker may have
	// the delivery. The handler's result is not committed.
	ErrLeaseLost = errors.New("the lease was lost; the delivery goes to another worker")
	// ErrTimeout: the handler took longer than Options.HandlerTimeout.
	ErrTimeout = errors.New("the handler's time is up")
	// ErrDraining: the worker stops and Options.DrainTimeout has passed. A handler
	// that returns an error now gives its delivery back; the attempt is not
	// counted.
	ErrDraining = errors.New("the worker stops")
)

// errExit is the result of a handler that ended its goroutine.
var errExit = errors.New("the handler ended its goroutine without returning")

// PanicError is the result of a handler that panicked.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where
}

// Error is the text of the value.
func (e *PanicError) Error() string { return "panic: " + fmt.Sprint(e.Value) }

// Retry fails a delivery so that it is tried again after a time of the
// handler's choice, 0 to 30 days, rather than of the policy's. The attempt
// counts: the last one makes a dead letter.
func Retry(after time.Duration, err error) error {
	after = max(0, min(after, longestDelay))
	return &verdict{err: err, text: "tried again on purpose", after: &after}
}

// Terminal fails a delivery that no retry can help: a dead letter at once.
func Terminal(err error) error {
	return &verdict{err: err, text: "refused for good", terminal: true}
}

// longestDelay is the longest delay of a nack.
const longestDelay = 30 * 24 * time.Hour

// verdict is an error that says what is to become of the delivery.
type verdict struct {
	err      error
	text     string // when there is no err
	after    *time.Duration
	terminal bool
}

// Error is the text of the error inside.
func (v *verdict) Error() string {
	if v.err == nil {
		return v.text
	}
	return v.err.Error()
}

// Unwrap is the error inside.
func (v *verdict) Unwrap() error { return v.err }

// verdictOf finds what an error says about the delivery; nil when it says
// nothing.
func verdictOf(err error) *verdict {
	var v *verdict
	if errors.As(err, &v) {
		return v
	}
	return nil
}

// failureBytes is the longest failure text of a nack.
const failureBytes = 1024

// failureText makes a text that the store takes: valid UTF-8 of bounded length.
func failureText(err error) string {
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) <= failureBytes {
		return text
	}
	end := failureBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// repeatable says that the same call may help, and cannot do harm: nothing was
// recorded, or what happened is not known.
func repeatable(f *fault.Error) bool { return f != nil && f.Retry == fault.RetrySameID }

// leaseGone says that a refusal is about the lease: the delivery is not this
// worker's any more.
func leaseGone(f *fault.Error) bool {
	if f == nil || f.Facts["effect"] != "" {
		return false // of one of the handler's effects
	}
	switch f.Code {
	case fault.LeaseExpired, fault.StaleLease, fault.TokenInvalidated, fault.NotFound:
		return true
	case fault.PermissionDenied:
		return f.Reason == "policy_epoch" || f.Reason == "other_principal"
	}
	return false
}
