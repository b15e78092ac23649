// Package script runs readable scripts against the state machine: commands and
// queries of the contract, a clock that moves only when told, and the rows they
// leave.
//
// Owns: the language of the scripts, the form in which rows and answers are
// shown, the scripts in testdata.
//
// May: drive internal/machine with the operations of the catalog on a store in
// memory; stand only in tests.
//
// May not: start a server, sleep, or change a row except through the log.
//
// Start reading at: script_test.go, then any of testdata.
package script
