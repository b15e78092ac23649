// Package changes numbers the changes of the catalog, so that every shard gets
// each of them once and in order.
//
// Owns: the catalog's revision, the history of changes in the catalog shard,
// and the revision each data shard has.
//
// May: use op and table.
//
// May not: know what a change says; that is the business of the package that
// made it.
//
// Start reading at: changes.go.
package changes
