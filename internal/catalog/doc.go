// Package catalog is the one list of resource packages; the registry of
// operations is made of it.
//
// Owns: the list, and the goldens of every operation, field and table id.
//
// May: import every resource package.
//
// May not: hold behaviour.
//
// Start reading at: catalog.go.
package catalog
