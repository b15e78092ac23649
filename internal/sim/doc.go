// Package sim runs the whole store through what can happen to a machine and
// proves from the callers' side that nothing was lost and nothing done twice.
//
// Owns: power losses on a file system that forgets what was not synced.
//
// May: use everything; stand only in tests.
//
// May not: look into the store except through operations and the check.
//
// Start reading at: power_test.go.
package sim
