package kv

import (
	"errors"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Files are plain files in one directory of the file system that a store is on, for
// what is too large or too short-lived for rows.
type Files struct {
	fs  vfs.FS
	dir string
}

// NewFiles makes the directory if it is missing. Its parent must exist.
func NewFiles(s *Store, dir string) (*Files, error) {
	f := &Files{s.disk.FS, dir}
	if err := f.fs.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return f, f.settle(f.fs.PathDir(dir))
}

// Create replaces a file by what fill writes, and returns once all of it is on disk.
// After an error there is no such file, or one that is to be made again.
func (f *Files) Create(name string, fill func(io.Writer) error) error {
	path := f.fs.PathJoin(f.dir, name)
	file, err := f.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = fill(file); err == nil {
		err = file.Sync()
	}
	if err = firstError(err, file.Close()); err != nil {
		return errors.Join(err, f.fs.Remove(path))
	}
	return f.settle(f.dir)
}

// Open reads a file; Close it. The error is fs.ErrNotExist where there is none.
func (f *Files) Open(name string) (io.ReadCloser, error) {
	return f.fs.Open(f.fs.PathJoin(f.dir, name), vfs.SequentialReadsOption)
}

// Remove removes a file, there or not.
func (f *Files) Remove(name string) error {
	if err := f.fs.Remove(f.fs.PathJoin(f.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Names are the names of all files, in no order.
func (f *Files) Names() ([]string, error) { return f.fs.List(f.dir) }

// settle makes the names in a directory durable.
func (f *Files) settle(dir string) error {
	d, err := f.fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return firstError(d.Sync(), d.Close())
}
