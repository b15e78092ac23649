// Command quickstart shows the main job in one minute: an order, its event, its
// announcement and the work it causes commit together, and a worker commits
// what it did together with its acknowledgement.
//
//	go run ./examples/quickstart
//
// Owns: an example to read and to copy from.
//
// May: use the public packages.
//
// May not: use anything internal.
//
// Start reading at: main.go.
package main
