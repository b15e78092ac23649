package kv

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// allocate lengthens a file without writing to it.
func allocate(f vfs.File, from, to uint64) error {
	fd := f.Fd()
	if fd == vfs.InvalidFd {
		return errors.ErrUnsupported
	}
	return unix.Fallocate(int(fd), 0, int64(from), int64(to-from))
}
