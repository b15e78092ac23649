// Package peer is what the nodes of a cluster say to each other, over mutual TLS:
// messages that may be lost, streams that arrive whole or not at all, and calls
// that are answered.
//
// Owns: the name in a node's certificate, the greeting with which a connection
// begins, the queues in front of a connection, reconnecting, the address book.
//
// May: listen and dial; start goroutines, which Close ends; read the clock.
//
// May not: know what a message, a stream or a call means; block who sends a
// message; talk to a node that its certificate does not name; repeat a call.
//
// Start reading at: mesh.go, then link.go and outbox.go.
package peer
