// Package engine is the door: everything that wants something of the store
// comes through Engine.Do.
//
// Owns: the order of steps of a write and a read, authentication, admission,
// the node's clock, long polls, bringing catalog changes to every shard, handing
// calls to the node that leads their shard.
//
// May: propose to the log; read snapshots; start goroutines that Close ends.
//
// May not: know what an operation does beyond its handler; decide anything that
// the state machine must decide.
//
// Start reading at: do.go, then read.go and engine.go.
package engine
