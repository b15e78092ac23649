// Package store keeps the rows of collections: documents and tombstones, their
// index entries, their counters.
//
// Owns: the tables of documents, the rule that every document has exactly one
// entry in every index, uniqueness, the removal of tombstones whose time is
// over, the removal of deleted collections, and the check of all of it.
//
// May: use table, jsontree and the definition of a collection.
//
// May not: decide revisions, rights or schemas; know requests.
//
// Start reading at: tables.go, then write.go and scan.go.
package store
