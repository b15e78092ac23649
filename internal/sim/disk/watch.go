package disk

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Sync is a moment at which something is made durable.
type Sync struct {
	Number int    // of the sync, from 1
	File   string // name without its directory; "." for the directory itself
	After  bool   // it is done
}

// Watched is a file system that calls a function before and after every sync of a
// file or directory, in the goroutine that syncs, and knows how far files were
// written: one that is used again is longer.
type Watched struct {
	vfs.FS
	reach func(Sync)
	syncs atomic.Int64

	mu   sync.Mutex
	ends map[string]int
}

// Watch wraps a file system.
func Watch(fs vfs.FS, reach func(Sync)) *Watched {
	return &Watched{FS: fs, reach: reach, ends: map[string]int{}}
}

// Newest is the log that was begun last, and how far it was written.
func (w *Watched) Newest() (log string, end int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, n := range w.ends {
		if Kind(name) == "log" && name > log {
			log, end = name, n
		}
	}
	return log, end
}

// Syncs is how many syncs have begun.
func (w *Watched) Syncs() int { return int(w.syncs.Load()) }

func (w *Watched) around(file string, sync func() error) error {
	s := Sync{Number: int(w.syncs.Add(1)), File: file}
	w.reach(s)
	err := sync()
	s.After = true
	w.reach(s)
	return err
}

func (w *Watched) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends[name] = 0
	return &watchedFile{f, w, name}, nil
}

// Create, ReuseForWrite, OpenReadWrite and OpenDir give what can be synced.
func (w *Watched) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.Create(name, c)
	return w.file(w.FS.PathBase(name), f, err)
}

func (w *Watched) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.ReuseForWrite(old, name, c)
	return w.file(w.FS.PathBase(name), f, err)
}

func (w *Watched) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := w.FS.OpenReadWrite(name, c, opts...)
	return w.file(w.FS.PathBase(name), f, err)
}

func (w *Watched) OpenDir(name string) (vfs.File, error) {
	f, err := w.FS.OpenDir(name)
	return w.file(".", f, err)
}

// Unwrap lets Pebble find the file system below.
func (w *Watched) Unwrap() vfs.FS { return w.FS }

type watchedFile struct {
	vfs.File
	fs   *Watched
	name string
}

// Write adds to the end.
func (f *watchedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.ends[f.name] += n
	return n, err
}

// Sync and SyncData are told of.
func (f *watchedFile) Sync() error     { return f.fs.around(f.name, f.File.Sync) }
func (f *watchedFile) SyncData() error { return f.fs.around(f.name, f.File.SyncData) }
