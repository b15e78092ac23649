// Package formats keeps stores that earlier versions of this program wrote, and
// proves that the present one opens them and answers as those did.
//
// Owns: the stores in testdata, what they were filled with, and what they
// answered then.
//
// May: use the public package, the check, backups and kv; stand only in tests.
//
// May not: rewrite a store that is kept. When the stored form changes, one more
// is added: KEYLOAD_KEEP=name go test ./internal/formats fills it.
//
// Start reading at: formats_test.go.
package formats
