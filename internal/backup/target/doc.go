// Package target keeps backups: in a directory, or in a bucket of S3.
//
// Owns: how a backup gets its name only when all of it is there, and never over
// another one; where a location a person wrote is; the settings of S3.
//
// May: read and write files; call S3; read the environment.
//
// May not: know what is in a backup; put a secret into an error.
//
// Start reading at: target.go, then directory.go and s3.go.
package target
