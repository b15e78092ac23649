// Package history records what concurrent clients of a store asked and were
// answered, and decides whether a store that keeps its word can have answered so.
//
// Owns: the history of documents and the check that it is linearizable; the ledger
// of messages, events and checkpoints and the check that nothing acknowledged is
// missing or was done twice; the clients that make both.
//
// May: call operations; take as long as a check needs.
//
// May not: be imported by anything but tests; look into a store except through
// operations; count an answer that never came as a success or as a failure.
//
// Start reading at: document.go, then ledger.go and clients.go.
package history
