// Package membership keeps the members of every shard as the list of members wants
// them: who leads a shard invites, promotes and removes replicas, and hands its
// leadership on. It also asks every node how it is.
//
// Owns: the loop that compares the list with what the shards have, the spreading of
// leaderships, cluster.status.
//
// May: read the list through the engine; ask the replicated log to change members;
// call other nodes.
//
// May not: decide who is a member; touch state.
//
// Start reading at: service.go, then reconcile.go.
package membership
