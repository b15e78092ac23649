//go:build unix

package target

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// hold tells others that a file is in use, until the result is closed or the process
// ends. Errors: errTaken if somebody else does. sure is false where the file system
// does not let anybody tell.
func hold(path string) (held io.Closer, sure bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, errors.Join(errTaken, f.Close())
	}
	return f, err == nil, nil
}
