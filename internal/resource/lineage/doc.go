// Package lineage is the history of a store's histories: which incarnation a
// position of a shard belongs to.
//
// Owns: the table of earlier incarnations.
//
// May: use codec, kv, table.
//
// May not: decide what becomes of what an earlier history left; know a command.
//
// Start reading at: lineage.go.
package lineage
