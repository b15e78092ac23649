// Package dev runs a whole cluster on this machine, for development: its nodes are
// processes of this program, each with a directory and ports of its own.
//
// Owns: the layout of such a cluster's directory, the first start, the processes
// and what is done when one ends, how their logs are told apart.
//
// May: make stores and certificates; start this program again and end what it
// started; call the cluster as any client does; print.
//
// May not: open the store of a node that may run; end a process that it did not
// start; be a way to run a cluster that matters.
//
// Start reading at: run.go, then plan.go and child.go.
package dev
