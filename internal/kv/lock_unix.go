//go:build unix

package kv

import "syscall"

// errLockHeld is what flock answers when another process has the lock.
var errLockHeld error = syscall.EAGAIN
