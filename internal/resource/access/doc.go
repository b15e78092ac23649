// Package access decides who may do what: principals, their keys, capabilities
// and protected fields.
//
// Owns: principal policies and API keys, principals.* and api-keys.*
// operations, the decision Allow, and the projection of protected fields.
//
// May: use changes, and jsontree to take fields out of values.
//
// May not: trust anything a request says about its caller.
//
// Start reading at: allow.go, then fields.go.
package access
