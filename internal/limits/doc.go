// Package limits holds every bound and default of KeyLoad.
//
// Owns: the numbers of the contract, with their units.
//
// May: be imported by every internal package.
//
// May not: import anything; hold a number that is not a bound or a default.
//
// Start reading at: limits.go. The struct tags of package api repeat the bounds
// of fields so that documentation can show them; a test here compares.
package limits
