// Package demo does the main job on real input while its process is killed, and
// proves from the input alone that everything is there exactly once.
//
// A child process owns the store. It feeds the webhook deliveries, one atomic
// batch each, and competing workers process the queue they fill and two
// subscription groups on the topic, out of order. The parent kills it, starts it
// again, and in the end compares what a fresh process reads back with what the
// deliveries say must be there.
//
// Owns: the input's meaning, the feeder, the workers and how they fail, the
// drawing of the groups' windows, the moments of the kills, the comparison, its
// table and its line of JSON.
//
// May: start and kill its own child processes; sleep where a handler is slow;
// read the locale of the terminal.
//
// May not: trust a counter of the store in the comparison; end a process it did
// not start; remove a directory it did not fill.
//
// Start reading at: run.go and life.go, then child.go, groups.go and judge.go.
package demo
