package kv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// unfinishedName is the file that keeps a directory from being opened: it is
	// the first one that a restore makes and the last one it removes, which is the
	// one step that makes the store.
	unfinishedName = "RESTORING"
	lockName       = "LOCK"
)

// sign is what the file unfinishedName says. A file of that name that says anything
// else is somebody's own, and keeps nobody from anything.
type sign struct {
	made bool   // the directory was made for the restore
	of   string // what is restored; "" where that was not said
}

const (
	madeText  = "made for a restore\n"
	foundText = "found empty\n"
)

// ofNew is what a new store is of.
const ofNew = "new"

// maxOf bounds Options.Of, in bytes.
const maxOf = 64

var plainOf = regexp.MustCompile(`^[0-9A-Za-z-]{0,64}$`)

func (g sign) text() string {
	text := foundText
	if g.made {
		text = madeText
	}
	if g.of == "" || !plainOf.MatchString(g.of) {
		return text
	}
	return text + g.of + "\n"
}

// parseSign reads what text says, of which a power loss may have left the beginning
// only. It answers nil for what no restore writes.
func parseSign(text string) *sign {
	for _, g := range []*sign{{made: true}, {}} {
		first := g.text()
		if rest, ok := strings.CutPrefix(text, first); ok {
			g.of = strings.TrimSuffix(rest, "\n")
			if plainOf.MatchString(g.of) {
				return g
			}
		}
		if strings.HasPrefix(first, text) {
			return &sign{}
		}
	}
	return nil
}

// readSign answers nil where the directory has none.
func readSign(files vfs.FS, dir string) (*sign, error) {
	path := files.PathJoin(dir, unfinishedName)
	info, err := files.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, nil
	}
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, 2*maxOf))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return parseSign(string(b)), nil
}

// unfinished refuses a directory into which a restore was begun.
func unfinished(s *Store) error {
	if s.lent {
		return nil
	}
	g, err := readSign(s.disk.FS, s.dir)
	switch {
	case err != nil:
		return openError(s.dir, err)
	case g != nil && g.of == ofNew:
		return fmt.Errorf("%w: %s", ErrUnmade, s.dir)
	case g != nil:
		return fmt.Errorf("%w: %s", ErrUnfinished, s.dir)
	}
	return nil
}
