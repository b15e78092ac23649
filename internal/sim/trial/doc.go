// Package trial is what all trials of the simulator share: how many there are,
// their seeds, and the account they give at the end of a long run.
//
// Owns: the environment variables KEYLOAD_LONG, KEYLOAD_SEED and KEYLOAD_SUMMARY.
//
// May: read the environment; append to the summary.
//
// May not: be imported by anything but tests.
//
// Start reading at: trial.go.
package trial
