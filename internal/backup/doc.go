// Package backup copies an open store into one archive, and makes a store out of
// an archive again.
//
// Owns: the form of an archive and its manifest, what is verified and when, the
// order of steps of a restore.
//
// May: take a checkpoint of the store; read and write archives as streams.
//
// May not: know where an archive is kept; print; change a store that is open;
// leave anything behind that opens when a restore did not finish.
//
// Start reading at: manifest.go, then pack.go, read.go, create.go and restore.go.
package backup
