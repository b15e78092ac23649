// Package lint holds the rules of the source tree that a machine can check, as
// tests. It has no code of its own: every rule is a function in a test file,
// beside a test that shows the rule catching a violation.
//
// Owns: the order of the layers, what the deterministic core may not do, the
// sizes, the names, what every package and document must say.
//
// May: read every file of the repository; ask the go command for export data.
//
// May not: be imported; change a file; excuse anything without a reason.
//
// Start reading at: layers_test.go for the order of packages, then tree_test.go.
package lint
