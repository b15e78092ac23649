// Package openapi renders the descriptors of package api as an OpenAPI 3.1
// document and as rows for the documentation page.
//
// Owns: the JSON Schemas of the request and response types, and the shape of
// the document.
//
// May: read the types and field tags of package api by reflection.
//
// May not: know an operation or a field by name, apart from the types of
// package api whose JSON form is not that of their Go type.
//
// Start reading at: schema.go, then document.go.
package openapi
