// Package frame is the framing of a session: many calls in flight over one
// connection, answered in the order in which they complete.
//
// Owns: the frame header, the kinds of frames, the writer that joins waiting
// frames into one write, and reused buffers.
//
// May: read and write a connection; start one goroutine per Writer, which ends
// with Close.
//
// May not: know an operation, a request, a key or an error of the contract; take
// memory for a frame before its length is checked.
//
// Start reading at: frame.go, then writer.go.
package frame
