//go:build !linux

package kv

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func allocate(vfs.File, uint64, uint64) error { return errors.ErrUnsupported }
