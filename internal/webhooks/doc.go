// Package webhooks is real input: 329 GitHub webhook deliveries, embedded in
// the program, for the demo, the benchmarks and the tests.
//
// Owns: the data file and its attribution, reading it.
//
// May: use the standard library.
//
// May not: change a payload; import anything of KeyLoad.
//
// Start reading at: webhooks.go, then data/ATTRIBUTION.md.
package webhooks
