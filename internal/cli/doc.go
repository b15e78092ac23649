// Package cli is the program keyload: a command per operation, a few short ones
// for daily work, and the commands that run a store.
//
// Owns: the command line: words, flags, tables, exit codes, the texts of its
// errors.
//
// May: use the client, the embedded store and the node; read the environment;
// print.
//
// May not: know what an operation does; print an API key that was given to it.
//
// Start reading at: run.go, then flags.go and request.go.
package cli
