// Package directory is the catalog of resources: what each is, which domain it
// is bound to, how it behaves.
//
// Owns: resource definitions and their numbers, resources.* operations,
// resolving a name in a partition.
//
// May: use changes and access.
//
// May not: know what a resource's rows are; each kind's package removes its own.
//
// Start reading at: resolve.go, then configure.go.
package directory
