// Package stream is event streams: many ordered histories a stream set, each
// written with an expected revision.
//
// Owns: the mutation appendEvents and the operation streams.read.
//
// May: use source, which keeps the events.
//
// May not: own a table; know who reads.
//
// Start reading at: stream.go.
package stream
