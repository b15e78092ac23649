// Package machine is the database as a function: (state, log entry) → (state,
// outcomes, hints).
//
// Owns: the form of a command and an entry, receipts and their replay, the
// logged clock, the applied position, the rolling digest of state.
//
// May: call the functions of the registry's operations; decide authorization
// with access against the shard's own copy of the policies.
//
// May not: read a clock, a random source, the environment or the network; start
// a goroutine; depend on how commands are joined into entries.
//
// Start reading at: apply.go, then receipt.go.
package machine
