// Package inbox commits what a handler made of an input once per handler scope:
// the effects, the record that they were committed, and the acknowledgement of
// the delivery that brought the input, if one did.
//
// Owns: the record that a handler scope has processed an input (a message, an
// event, or something from elsewhere), its horizon, queues.process and
// commands.inbox.
//
// May: acknowledge a delivery through package queue, or through what a package
// below passes to Process; apply the effects through the registry.
//
// May not: repeat effects; acknowledge a delivery whose effects were refused;
// know what a group is.
//
// Start reading at: process.go, then input.go.
package inbox
