// Package httpgw is the HTTP surface: one route per operation of the registry,
// the tail of a source, sessions, the download of a backup, and the pages of a
// server.
//
// Owns: routes, media types, problem bodies, reading at most the body limit, the
// session protocol's server side, TLS and listening, request metrics.
//
// May: know the registry, the door, the encodings and the limits.
//
// May not: know an operation by name apart from the one a tail repeats; decide
// what a caller may do; check a bound of a field; log or answer a key, a token
// or a payload.
//
// Start reading at: gateway.go, then exchange.go, session.go.
package httpgw
