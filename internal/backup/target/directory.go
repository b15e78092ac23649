package target

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/keyload/keyload/fault"
)

// directory keeps backups as files, readable by their owner only.
type directory string

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

// Put implements Target. It writes under a hidden name; what a process that was
// killed left behind under one is removed first.
func (d directory) Put(ctx context.Context, name string, content io.Reader) (int64, error) {
	path := d.path(name)
	if _, err := os.Lstat(path); err == nil {
		return 0, exists(path)
	}
	d.tidy()
	f, err := d.begin(name)
	if err != nil {
		return 0, d.placeFault(err)
	}
	defer f.held.Close() // it was never written to
	n, err := io.Copy(f, within{ctx, content})
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = rename(f.Name(), path)
	}
	if err != nil {
		return 0, fileFault(path, errors.Join(err, os.Remove(f.Name())))
	}
	if err := d.sync(); err != nil {
		return n, unconfirmed(path, err)
	}
	return n, nil
}

func (d directory) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// linkAs gives a file another name that nothing has. That the first name cannot be
// taken from it does no harm: it is a hidden one.
func linkAs(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	_ = os.Remove(from)
	return nil
}

// Get implements Target.
func (d directory) Get(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	path := d.path(name)
	f, err := os.Open(path)
	if err != nil {
		return nil, fileFault(path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.New(fault.Validation, "location", "%s is no file", path)
	}
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		return nil, fileFault(path, errors.Join(err, f.Close()))
	}
	if length < 0 {
		return f, nil
	}
	return limited{io.LimitReader(f, length), f}, nil
}

type limited struct {
	io.Reader
	io.Closer
}

// List implements Target.
func (d directory) List(context.Context) ([]Entry, error) {
	found, err := os.ReadDir(string(d))
	if err != nil {
		return nil, d.placeFault(err)
	}
	out := []Entry{}
	for _, e := range found {
		info, err := e.Info()
		isPartial := partialName.MatchString(e.Name())
		if err != nil || !info.Mode().IsRegular() || !isPartial && (!strings.HasSuffix(e.Name(), Extension) || e.Name()[0] == '.') {
			continue // it is no backup, or was removed meanwhile
		}
		out = append(out, Entry{e.Name(), info.Size(), info.ModTime().UTC(), isPartial})
	}
	return out, nil
}

// Delete implements Target.
func (d directory) Delete(_ context.Context, name string) error {
	path := d.path(name)
	if err := os.Remove(path); err != nil {
		return fileFault(path, err)
	}
	return fileFault(path, d.sync())
}

// within reads until a context ends.
type within struct {
	ctx context.Context
	r   io.Reader
}

func (w within) Read(p []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}

// placeFault is fileFault for the directory.
func (d directory) placeFault(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(string(d)); err == nil {
			return fault.New(fault.Validation, "not_permitted", "no file can be made in %s", string(d))
		}
		return noPlace("directory", string(d))
	}
	return fileFault(string(d), err)
}

// fileFault turns what a file system says into the contract's codes.
func fileFault(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case fault.From(err) != nil:
		return fault.From(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Cancelled, "cancelled", "the work was ended; there is no backup %s", path)
	case errors.Is(err, fs.ErrExist):
		return exists(path)
	case errors.Is(err, fs.ErrNotExist):
		return noBackup(path)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Validation, "not_permitted", "%v", err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.New(fault.ResourceExhausted, "no_room", "there is too little room for %s: %v", path, err)
	}
	return fault.New(fault.RecoveryRequired, "backup_not_kept", "%s: %v", path, err)
}
