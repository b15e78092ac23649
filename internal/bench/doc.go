// Package bench measures KeyLoad on a real disk: how many messages a second it
// takes and hands out, how long each waits, and what one message costs in keys,
// rows, bytes, syncs, processor time and memory.
//
// Owns: the workloads, the clients that do them, latencies, the raw speed of the
// disk in the same run, the server that is measured over the wire in a process
// of its own, the report.
//
// May: make and remove stores below a directory it is given; start goroutines
// and one child process, which end with the measurement; read the clock.
//
// May not: touch a store it did not make; report a run whose counters do not
// agree with what its clients saw.
//
// Start reading at: workload.go, then session.go.
package bench
