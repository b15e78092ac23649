// Command worker shows a worker of a queue: it mails customers, notes what it
// did, and is failed by the world in three ways. What it notes happens once for
// each message, together with the acknowledgement. A group then follows what the
// worker published.
//
//	go run ./examples/worker
//
// Owns: an example to read and to copy from.
//
// May: use the public packages.
//
// May not: use anything internal.
//
// Start reading at: main.go.
package main
