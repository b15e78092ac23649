// Package batch is the atomic batch: mutations of several resources that apply
// all or not at all.
//
// Owns: commands.commit.
//
// May: apply the mutations of the registry.
//
// May not: know what a mutation does.
//
// Start reading at: commit.go.
package batch
