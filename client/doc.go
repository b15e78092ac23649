// Package client calls a KeyLoad server: the same typed calls as an embedded
// store, with retries under one command id.
//
// Owns: sessions and plain HTTP requests to a server, what is retried and for
// how long, the typed calls of every operation, the iterators and the short
// constructors of mutations, which embedded and remote users share.
//
// May: start goroutines that end with Close; make command ids.
//
// May not: link anything of the server; say that a write happened, or did not
// happen, without knowing it.
//
// Start reading at: client.go, then calls.go, build.go and retry.go.
package client
