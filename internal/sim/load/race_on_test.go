//go:build race

package load

// measured says that times and memory mean something: not under the race detector.
const measured = false
