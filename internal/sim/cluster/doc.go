// Package cluster runs real nodes of a cluster on this machine and does to them what
// happens to machines: it kills and stops processes, cuts and slows the ways between
// them in one direction or both, and erases disks.
//
// Owns: the processes of the nodes; the ways between them, each of which passes
// through a proxy; what a cluster must look like when the faults are over.
//
// May: start processes and end those that it started; listen on addresses of the
// loopback network; call operations.
//
// May not: be imported by anything but tests; look into a store except through
// operations; leave a process or a directory behind.
//
// Start reading at: cluster.go, then ways.go and faults.go.
package cluster
