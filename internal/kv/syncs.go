package kv

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncCounter counts how often files are synced, so that benches can tell how
// many commands shared one.
type syncCounter struct {
	vfs.FS
	count atomic.Uint64
}

type countedFile struct {
	vfs.File
	count *atomic.Uint64
}

func (f countedFile) Sync() error {
	f.count.Add(1)
	return f.File.Sync()
}

func (f countedFile) SyncData() error {
	f.count.Add(1)
	return f.File.SyncData()
}

func (c *syncCounter) counted(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return countedFile{f, &c.count}, nil
}

// Create, ReuseForWrite and OpenReadWrite are where files for writing come from.
func (c *syncCounter) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return c.counted(c.FS.Create(name, category))
}

func (c *syncCounter) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return c.counted(c.FS.ReuseForWrite(oldname, newname, category))
}

func (c *syncCounter) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return c.counted(c.FS.OpenReadWrite(name, category, opts...))
}

// Unwrap lets Pebble find the file system below.
func (c *syncCounter) Unwrap() vfs.FS { return c.FS }

// Syncs is how often a file of the store was synced since Open.
func (s *Store) Syncs() uint64 { return s.syncs.count.Load() }
