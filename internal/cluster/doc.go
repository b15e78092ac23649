// Package cluster is what makes a directory a node of a cluster: its settings and
// its certificates.
//
// Owns: cluster.json, its strict reading and its writing; a certificate authority
// and the certificates of nodes, for development and small clusters.
//
// May: read and write files in the directories it is given; read a clock and the
// system's randomness for certificates.
//
// May not: open a store or a connection; overwrite a file; log a private key.
//
// Start reading at: settings.go, then certs.go.
package cluster
