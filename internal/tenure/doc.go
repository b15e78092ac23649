// Package tenure is what the leader does without being asked: it proposes a
// tick when something is due.
//
// Owns: one goroutine a shard that waits for the next due instant.
//
// May: act through engine only.
//
// May not: remember anything a new leader would need.
//
// Start reading at: due.go.
package tenure
