//go:build !unix

package kv

import "errors"

var errLockHeld = errors.New("lock held")
