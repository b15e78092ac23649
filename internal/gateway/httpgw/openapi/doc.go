// Package openapi renders the descriptors of package api as an OpenAPI 3.1
// document and as rows for the documentation page.
//
// Owns: the shape of the document and of the page.
//
// May: read the descriptors of package api, and their types as package apischema
// describes them.
//
// May not: know an operation or a field by name, apart from those of the paths that
// are no operations.
//
// Start reading at: document.go.
package openapi
