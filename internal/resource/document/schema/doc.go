// Package schema holds documents to the JSON Schema of their collection.
//
// Owns: compiling a schema, the bound on what checking against it may cost, the
// wording of violations.
//
// May: use the schema library, jsontree and limits.
//
// May not: load anything from a file or the network; let a map's order reach an
// answer; put a value, or a name that stands only in the document, into an
// error; know tables or commands.
//
// Start reading at: compile.go, then cost.go and check.go.
package schema
