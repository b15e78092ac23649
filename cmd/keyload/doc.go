// Command keyload is the program: a store, its server and its command line in
// one file.
//
// Owns: the process: its arguments, signals and exit code.
//
// May: call cli.Run.
//
// May not: do anything else.
//
// Start reading at: main.go.
package main
