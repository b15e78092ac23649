// Package document is collections of JSON documents: written in batches, read by
// id, found by their fields.
//
// Owns: the mutations putDocument, patchDocument and deleteDocument, the
// operations documents.get, list and query, what a collection's policy may say,
// and who may change or see protected fields.
//
// May: use directory for what a collection is, access for protected fields, its
// own parts store and schema.
//
// May not: keep anything between commands but compiled schemas; answer a query
// from an index differently than without one.
//
// Start reading at: put.go and patch.go, then query.go and plan.go.
package document
