// Package load asks more of a store than it can do, and keeps more in it than fits
// into memory, and measures what that does to those who work.
//
// Owns: callers beyond capacity on a slow disk, embedded and over HTTP; a store of
// a million messages that is opened again.
//
// May: measure time, as a ratio within one run; measure memory.
//
// May not: be imported by anything but tests.
//
// Start reading at: load_test.go, then million_test.go.
package load
