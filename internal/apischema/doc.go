// Package apischema describes the request and response types of package api in JSON
// Schema.
//
// Owns: the JSON Schema of every type of package api, as each surface that describes
// itself shows it.
//
// May: read the types and field tags of package api by reflection.
//
// May not: know an operation or a field by name, apart from the types of package api
// whose JSON form is not that of their Go type.
//
// Start reading at: schema.go.
package apischema
