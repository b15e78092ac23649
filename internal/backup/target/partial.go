package target

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// partialName matches the names that files have before they are backups.
var partialName = regexp.MustCompile(`^\..+\.\d+\.partial$`)

// partial is a file that is no backup yet. What it holds tells other processes that it
// is being written, and ends with this one.
type partial struct {
	*os.File
	held io.Closer
}

// errTaken says that somebody else has a file in use.
var errTaken = errors.New("somebody else uses this file")

// begin makes one.
func (d directory) begin(name string) (*partial, error) {
	for {
		f, err := os.CreateTemp(string(d), "."+name+".*.partial") // 0600
		if err != nil {
			return nil, err
		}
		held, _, err := hold(f.Name())
		switch {
		case err == nil && hasName(f):
			return &partial{f, held}, nil
		case err == nil:
			_ = held.Close()
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errTaken):
			return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		_ = f.Close() // somebody tidies up, and came before it was held
	}
}

// hasName says whether a file still has its name.
func hasName(f *os.File) bool {
	made, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(made, there)
}

// partials are the names of those in the directory.
func (d directory) partials() (names []string) {
	found, _ := os.ReadDir(string(d)) // what is wrong with it the next step says
	for _, e := range found {
		if e.Type().IsRegular() && partialName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// tidy removes what processes left that were killed while they made a backup. What
// somebody still writes stays, and so does what cannot be removed.
func (d directory) tidy() {
	for _, name := range d.partials() {
		path := filepath.Join(string(d), name)
		held, sure, err := hold(path)
		if err != nil {
			continue
		}
		if sure {
			_ = os.Remove(path)
		}
		_ = held.Close()
	}
}
