// Package wire turns requests and responses into bytes and back: deterministic
// CBOR for the log and stored receipts, CBOR and JSON for bodies.
//
// Owns: the strictness of decoding, the canonical encoding and the fingerprint
// of a command, and the Validation errors of malformed bodies.
//
// May: import api and fault; read struct tags.
//
// May not: check bounds (api.Validate does), know an operation by name, put a
// value of the input into an error, round a number.
//
// Start reading at: log.go, then json.go.
package wire
