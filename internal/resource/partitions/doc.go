// Package partitions remembers the names of the partitions a shard holds, since
// keys hold only their hashes.
//
// Owns: the partition table and the hash of a partition's name.
//
// May: use table, and op for its check.
//
// May not: know what a partition holds.
//
// Start reading at: partitions.go.
package partitions
