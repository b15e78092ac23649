package disk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Copy is everything that is on a crashable disk, synced or not.
func Copy(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
}

// Content is a copy of a file's bytes.
func Content(fs *vfs.MemFS, path string) ([]byte, error) {
	b, err := fs.UnsafeGetFileDataBuffer(path)
	return slices.Clone(b), err
}

// Written is how many bytes of a file are not zeros at its end: a log is made
// longer ahead of what is written.
func Written(b []byte) int { return len(bytes.TrimRight(b, "\x00")) }

// Flip changes one bit of a file.
func Flip(fs *vfs.MemFS, path string, at int) error {
	b, err := fs.UnsafeGetFileDataBuffer(path)
	if err == nil {
		b[at] ^= 1 << (at % 8)
	}
	return err
}

// Replace makes a file anew.
func Replace(fs *vfs.MemFS, path string, content []byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Clone(content))
	return errors.Join(err, f.Sync(), f.Close())
}
