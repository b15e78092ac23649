// Package system is what the store does to itself: the identity of a store, and
// the installation of catalog changes in every shard.
//
// Owns: the store's identity and token keys, the internal command that carries
// changes to a shard.
//
// May: call Install of the packages that changes are for.
//
// May not: offer anything to callers.
//
// Start reading at: identity.go, then install.go.
package system
