// Package network is a network between nodes of one process that can be cut and
// slowed, each direction by itself.
//
// Owns: which directions between which nodes carry nothing, and how late they
// carry.
//
// May: dial over TCP; be imported by tests.
//
// May not: change or lose a byte of a connection that stays: a cut holds bytes
// back, as TCP does, until it is mended or the connection is closed.
//
// Start reading at: network.go.
package network
