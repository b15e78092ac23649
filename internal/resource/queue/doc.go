// Package queue is the work queues: messages that are enqueued, claimed under a
// lease, and finished, retried or put aside.
//
// Owns: messages and their bodies, the head of a lane with its counters and
// limits, the indexes that say what is ready, scheduled, leased, expiring,
// finished or dead, the sweep after a limit was lowered; the mutations enqueue,
// cancelMessage, rescheduleMessage and redriveMessage; the operations
// queues.receive, complete, inspect, list, status, explain and redrive.
//
// May: use directory for what a queue is, access for protected fields, leasing for
// the rules that groups share.
//
// May not: read a clock; keep anything between commands; walk over more rows
// than it delivers.
//
// Start reading at: tables.go for the rows and what each operation costs, then
// lane.go, receive.go and complete.go.
package queue
