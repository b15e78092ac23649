// Package disk has the file systems that tests run a store on.
//
// Owns: a file system that tells of every sync, before and after.
//
// May: know Pebble's file systems.
//
// May not: be imported by anything but tests; know what a store is.
//
// Start reading at: watch.go.
package disk
