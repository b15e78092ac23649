// Package journal keeps the raft logs of all shards of a node in one store, so
// that one sync serves all of them.
//
// Owns: the keys and records of that store: entries, hard states, where a log
// begins, and the note of a snapshot being installed; the recent entries in
// memory.
//
// May: import the messages of raft and its storage interface.
//
// May not: know what an entry holds; drive a raft group; start a goroutine.
//
// Start reading at: journal.go, then shard.go.
package journal
