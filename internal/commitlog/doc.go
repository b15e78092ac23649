// Package commitlog is what the log of a node promises, whatever makes it durable:
// the interface that the door uses, what a log runs on, how it tells where it
// stands, and the errors that every log has in common.
//
// Owns: the interface, its configuration, its status and its errors.
//
// May: name the state machine and the store.
//
// May not: know an operation; start a goroutine; know how an entry becomes durable.
//
// Start reading at: commitlog.go.
package commitlog
