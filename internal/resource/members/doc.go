// Package members is the list of the nodes of a cluster: which there are, which ids
// were ever given out, and which node was chosen to lead a shard. The list is what
// is wanted; whoever leads a shard brings the shard's own members to it.
//
// Owns: the tables of nodes and of chosen leaders, in the catalog shard, and the
// operations that change them.
//
// May: read the tables of the catalog shard.
//
// May not: know which node is alive, who leads, or how a replica is reached.
//
// Start reading at: members.go.
package members
