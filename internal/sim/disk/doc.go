// Package disk has the file systems that tests run a store on.
//
// Owns: file systems that tell of every sync, before and after, that are slow, or
// that have no room; what the files of a store are by their names; damage to files.
//
// May: know Pebble's file systems.
//
// May not: be imported by anything but tests; know what a store is.
//
// Start reading at: watch.go.
package disk
