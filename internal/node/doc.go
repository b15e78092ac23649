// Package node puts a server together: an open store, the service that acts
// when something is due, the HTTP surface, metrics and an orderly end.
//
// Owns: making a store with its first administrator, the order in which the
// parts of a server start and stop, the version of the program.
//
// May: use the embedded store and the gateways; listen; log.
//
// May not: decide anything about a request; log a key, a token or a payload.
//
// Start reading at: serve.go, then member.go for a node of a cluster, and init.go.
package node
