// Package kill ends real processes that own a store, at every stage of an entry
// and at random, and proves from what they had told that nothing was lost and
// nothing done twice.
//
// Owns: the child, which is the test binary again; the trials.
//
// May: start and kill its own children.
//
// May not: end a process that it did not start; leave one behind.
//
// Start reading at: kill_test.go, then child_test.go.
package kill
