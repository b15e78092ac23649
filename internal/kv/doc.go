// Package kv is the ordered store of bytes below everything: one Pebble
// database, a transaction that lives as an overlay above it until its entry is
// committed, and read-only snapshots.
//
// Owns: the Pebble database and its options, the overlay of an entry's writes
// with per-command rollback, the cache of hot rows, counts of work.
//
// May: import Pebble (the only package that does).
//
// May not: know a table, a record or an operation; decide when to sync beyond
// what Commit says.
//
// Start reading at: store.go and open.go, then tx.go.
package kv
