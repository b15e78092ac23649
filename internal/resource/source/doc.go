// Package source keeps ordered events: one topic, or one generation of one
// stream, in one partition. Streams and topics are thin users of it.
//
// Owns: the event, identity, head and purged-identity tables; appending with
// unique event ids and exact quotas; reading pages with signed cursors; cutting
// the head of a source by purge, quota and age, never past a pin, and the bounded
// steps that remove what was cut.
//
// May: use directory to resolve names and access for protected fields.
//
// May not: know who reads (groups stand below it, and pin through the registry);
// write an event twice; let the cost of a command depend on how many events a
// source holds.
//
// Start reading at: key.go and tables.go, then append.go, read.go, cut.go and purge.go.
package source
