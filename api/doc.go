// Package api declares every operation of KeyLoad once: its name, who may call
// it, its request and its response. HTTP, the Go client, the command line, the
// documentation and the log are all rendered from these declarations.
//
// Owns: the operation descriptors, the request and response types with the
// names, bounds and defaults of their fields, the references (partition, lane,
// stream, source), the batch's mutations, and their JSON and CBOR forms.
//
// May: import fault.
//
// May not: decide anything about stored state; reuse a CBOR field number or an
// operation number that was ever released.
//
// Start reading at: operation.go, refs.go, then commands_commit.go; field.go for
// how tags become checks.
//
// # Field tags
//
// json names the field on every textual surface; it has omitzero (omitempty for
// lists and maps) exactly where the field is optional. cbor gives its number in
// the log and in application/cbor bodies; a number is never reused. doc is the
// sentence of the documentation. default is the value an absent field has.
// minimum, maximum, minLength, maxLength, minItems, maxItems and enum are
// bounds; minLength and maxLength of texts and bytes count bytes; on a list,
// format, enum and maxLength speak of its entries. format is one of identifier,
// uuid, pointer (a JSON pointer below the root), capability, object (JSON whose
// root is an object) and headers. A Time is always within 1970 to 9999, an
// unsigned number at most 2^63-1.
//
// # Absent, default, out of bounds
//
// A zero is absent, except behind a pointer. Whoever takes a request from a
// caller completes it: Call and package wire do, with ApplyDefaults. Validate
// then refuses a complete request that is out of bounds, so a zero that a
// caller wrote where the minimum is one is refused and never replaced. The
// state machine sees complete and valid requests only.
package api
