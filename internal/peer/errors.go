package peer

import (
	"errors"
	"fmt"

	"github.com/keyload/keyload/fault"
)

var (
	// ErrNotSent is what errors are of which the other node has certainly not acted
	// on anything. They are OwnershipLost (reason unreachable) too.
	ErrNotSent = errors.New("the other node got nothing")
	// ErrLost is what errors are after which nobody knows whether the other node has
	// acted. They are UnknownWriteOutcome (reason node_lost) too.
	ErrLost = errors.New("the other node may have acted on it")
)

// callError is for this node's log in full, and for callers as a fault, which names
// no address.
type callError struct {
	class error
	fault *fault.Error
	cause error
}

func (e *callError) Error() string { return e.class.Error() + ": " + e.cause.Error() }

func (e *callError) Unwrap() []error { return []error{e.class, e.fault, e.cause} }

func notSent(format string, args ...any) error {
	return &callError{ErrNotSent, fault.New(fault.OwnershipLost, "unreachable",
		"the node that has to do it cannot be reached from the one that was asked; nothing happened"), fmt.Errorf(format, args...)}
}

func lost(format string, args ...any) error {
	return &callError{ErrLost, fault.New(fault.UnknownWriteOutcome, "node_lost",
		"the node that had to do it was lost before it answered; repeat the command with the same id to learn its outcome"), fmt.Errorf(format, args...)}
}
