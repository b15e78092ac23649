// Package course is one fixed course of a store's life that needs every kind of
// command, for tests that interrupt it at every point: one caller, fixed command
// ids, a clock that the course sets.
//
// Owns: the steps; carrying them out from any of them on; repeating what was
// answered; the state as a caller sees it, without what differs between two
// stores.
//
// May: open and close stores; drive an engine, ticks included.
//
// May not: be imported by anything but tests; depend on the machine's clock.
//
// Start reading at: step.go, run.go, then steps.go.
package course
