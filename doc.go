// Package keyload is a durable store in which documents, event streams,
// retained topics and work queues commit together.
//
//	db, err := keyload.Open("data")
//
// opens a store in this process. The same typed calls reach a server through
// package client.
//
// Owns: Open, Options, DB, and the names here of the client's constructors of
// mutations.
//
// May: put the packages of this module together.
//
// May not: hold behaviour of an operation.
//
// Start reading at: keyload.go, then build.go.
package keyload
