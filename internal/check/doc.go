// Package check proves that a store is sound: it reads every row and verifies
// every invariant that its packages know. Of a stopped store it can make the rows
// anew that follow from others.
//
// Owns: the walk over all shards, the report, the operation admin.check, the
// repair.
//
// May: open a store; run the checks of the registry; write, in a repair, what an
// audit says that derived rows must be.
//
// May not: change a byte of a row that follows from nothing, or of a store that
// is sound; know what any resource keeps.
//
// Start reading at: check.go, then repair.go and internal/op/audit.go.
package check
