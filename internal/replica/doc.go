// Package replica is the log of a node of a cluster: one raft group a shard, all
// of them in one loop with one journal.
//
// Owns: the raft groups and the loop that drives them, one apply goroutine a
// shard, proposals and their outcomes, linearizable reads, snapshots, membership,
// truncation, the comparison of digests.
//
// May: import raft (with its journal the only package that does); start
// goroutines, which Close ends; read the clock it was given.
//
// May not: know an operation; open a connection; acknowledge an entry before it
// is committed and applied; decide anything in apply from what only this node
// knows.
//
// Start reading at: log.go, then loop.go; transport.go is what it needs of others.
package replica
