// Package check proves that a store is sound: it reads every row and verifies
// every invariant that its packages know.
//
// Owns: the walk over all shards, the report.
//
// May: open a store read only; run the checks of the registry.
//
// May not: change a byte.
//
// Start reading at: check.go.
package check
