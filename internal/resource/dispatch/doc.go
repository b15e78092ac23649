// Package dispatch is the store's one switch over all deliveries.
//
// Owns: the record of whether the store delivers, in every shard, and the
// operation admin.dispatch.
//
// May: use changes, to bring the record to every shard.
//
// May not: know what is delivered; look at a resource.
//
// Start reading at: dispatch.go.
package dispatch
