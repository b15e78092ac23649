//go:build race

package api

// raceDetector says that the tests run under it: then pools drop what they are given
// at random, and allocations say nothing.
const raceDetector = true
