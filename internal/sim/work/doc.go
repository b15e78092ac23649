// Package work is the work of many concurrent callers that need every kind of
// command, drawn from a seed, and the book that is kept of it, from which follows
// what a store must hold whenever it was interrupted.
//
// Owns: what callers do; the journal of what they sent and were answered; the
// book; the judgement of a store by it.
//
// May: call operations.
//
// May not: be imported by anything but tests; look into a store except through
// operations; believe a counter of the store that it did not count itself.
//
// Start reading at: journal.go, caller.go, then book.go.
package work
