// Package sim runs the whole store through what can happen to a machine and
// proves from the callers' side that nothing was lost and nothing done twice.
//
// Owns: power losses on a file system that forgets what was not synced: at every
// sync of a fixed course, and at random while many callers write.
//
// May: use everything; stand only in tests.
//
// May not: look into the store except through operations and the check.
//
// Start reading at: points_test.go, then power_test.go.
package sim
