// Package inbox commits what a handler did together with the acknowledgement of
// the message it did it for, once per handler scope.
//
// Owns: the record that a handler scope has processed a message, its horizon,
// queues.process.
//
// May: acknowledge a delivery through package queue; apply the effects through
// the registry.
//
// May not: repeat effects; acknowledge a message whose effects were refused.
//
// Start reading at: process.go.
package inbox
