package kv

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// StoreAround finds the directory of a store, or of an unfinished restore, in which
// path is, or would be if it were made; path may be the directory itself. Nobody else
// may put anything there: a store removes what it takes for its own.
func StoreAround(path string, o Options) (dir string, found bool) {
	files := onDisk(o)
	dir = files.PathJoin(path)
	if _, real := files.(private); real {
		dir = resolved(dir)
	}
	for {
		if holdsStore(files, dir) {
			return dir, true
		}
		parent := files.PathDir(dir)
		if parent == dir || parent == "" {
			return "", false
		}
		dir = parent
	}
}

// resolved is an absolute path without symbolic links, as far as it is there.
func resolved(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	missing := ""
	for dir := path; ; {
		real, err := filepath.EvalSymlinks(dir)
		parent := filepath.Dir(dir)
		if err == nil {
			return filepath.Join(real, missing)
		}
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return path
		}
		dir, missing = parent, filepath.Join(filepath.Base(dir), missing)
	}
}

func holdsStore(files vfs.FS, dir string) bool {
	if g, err := readSign(files, dir); err == nil && g != nil {
		return true
	}
	db, err := pebble.Peek(dir, files)
	return err == nil && db.Exists
}

// Unusable says whether an error is one of a path that cannot be a directory for a
// store, or not for this user: nothing happened, and repeating it will not help.
func Unusable(err error) bool {
	for _, cause := range []error{fs.ErrExist, fs.ErrPermission, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EROFS, ErrInside} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// storeNames are the names that files of a store have. The last one is that of a
// checkpoint's directory.
var storeNames = regexp.MustCompile(`^(\d+\.(sst|blob|log|dbtmp)|(MANIFEST|OPTIONS)-\d+(\.dbtmp)?|temporary\.\d+\.dbtmp|marker\.[a-z-]+\.\d+\..+|` + checkpointPrefix + `\d+)$`)

// storeName says whether a name is one that a store gives.
func storeName(name string) bool {
	_, _, isList := parseLogList(name)
	return isList || storeNames.MatchString(name)
}
