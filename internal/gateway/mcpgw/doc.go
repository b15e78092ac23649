// Package mcpgw lets agents call the operations by the Model Context Protocol.
//
// Owns: the tools, resources and prompt that an agent sees, and how a call of a tool
// becomes a request of an operation and its answer a result.
//
// May: read the descriptors of package api; send requests to the HTTP handler of the
// operations, which authenticates, decodes, evaluates and bounds them as it does for
// everybody.
//
// May not: know an operation's behaviour, look into its request or answer, or evaluate
// anything by itself.
//
// Start reading at: server.go, then tools.go.
package mcpgw
