// Package solo is the log of one node: the atomic batch of an entry's writes is
// the log, and an entry is durable when its batch is synced.
//
// Owns: one apply goroutine and one sync goroutine a shard, joining waiting
// commands into entries, evaluating the next entry while the last one is
// synced, answering only after the sync.
//
// May: read the clock it was given; start goroutines, which Close ends.
//
// May not: know an operation; answer before an entry is durable.
//
// Start reading at: log.go, then shard.go.
package solo
