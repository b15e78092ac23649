// Package jsontree takes JSON values apart without changing what they say:
// numbers keep every digit, texts keep their spelling, members keep their order.
//
// Owns: the tree of a value, JSON pointers (RFC 6901), reading single fields out
// of a text, removing and setting fields, and the order-preserving key form of
// scalars with exact numbers of any size.
//
// May: use codec; be used by every package that looks into documents and
// payloads.
//
// May not: round a number, know a resource, decide what is allowed, check what
// api.Validate has checked: its input is valid JSON of bounded depth.
//
// Start reading at: tree.go, then scalar.go.
package jsontree
