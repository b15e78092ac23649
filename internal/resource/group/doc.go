// Package group is the subscription groups: named readers of a source whose
// workers finish out of order, and whose checkpoint moves only through a
// contiguous finished prefix.
//
// Owns: the definition and the head of a group, its window of unfinished
// positions and gap runs, the indexes that say what may be claimed again, waits
// or is leased, its dead letters; every subscriptions operation.
//
// May: read events through package source and resolve names through directory;
// use access for protected fields, leasing for the rules that queues share, inbox
// for processing; hold events back from retention as a pin.
//
// May not: read a clock; copy an event, but into a dead letter; let the cost of a
// command follow the span of the window or the backlog; move a checkpoint over
// anything unfinished.
//
// Start reading at: tables.go for the rows and what each operation costs, then
// window.go, group.go, receive.go and complete.go.
package group
