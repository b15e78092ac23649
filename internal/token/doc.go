// Package token seals claims into the texts the store hands out (delivery
// tokens, cursors) and opens them again.
//
// Owns: the sealed form, its purposes and its keys.
//
// May: use codec and fault.
//
// May not: know what the claims of a purpose mean; put a token into an error.
//
// Start reading at: token.go.
package token
