// Package table gives rows their types: tables of keys and records, the list
// of table ids, and the one table of things that are due.
//
// Owns: the form "table id · shard · partition · …" of every key, the list of
// table ids (append-only), Damage, and the due table.
//
// May: use codec, kv and wire.
//
// May not: know what any resource keeps in its tables beyond the id and name.
//
// Start reading at: table.go, then ids.go and due.go.
package table
