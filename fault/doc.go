// Package fault is the one error type of KeyLoad: a code, a stable reason, a
// safe sentence, and what the caller may do next.
//
// Owns: the codes and reasons of the contract, the Error value, its HTTP status
// and exit code.
//
// May: be imported by every package and by users of KeyLoad.
//
// May not: import anything of KeyLoad; hold a token, a secret, a payload or
// another tenant's name in an error.
//
// Start reading at: fault.go, then codes.go.
package fault
