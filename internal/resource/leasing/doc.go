// Package leasing is the rules of leases that queues and groups share.
//
// Owns: which delivery tokens are let into the log; how long a lease may be and
// how old it may get; how long a failed delivery waits; arithmetic of instants.
//
// May: verify tokens at the door; draw jitter from what the leader logged.
//
// May not: know a row, or what is leased; keep anything.
//
// Start reading at: token.go, then lease.go.
package leasing
