package target

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// rename gives a file another name that nothing has, in one step.
func rename(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // the file system does not know it
		return linkAs(from, to)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
