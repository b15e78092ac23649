package kv

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system as Pebble sees it. It counts syncs, and it stops the
// store at the first write that fails.
//
// Pebble ends the process when its log or its manifest cannot be written, and
// tries a flush again and again without a pause. A program that embeds the store
// must not die of a full disk, and must still be able to read. So from the first
// failure on nothing on the disk is changed any more: what Pebble writes to its
// log and manifest, which it reads only when it opens, goes nowhere, and a new
// table waits until the store is closed. Nobody is told of such a write: Commit
// and Wait ask Err after Pebble has answered.
//
// Opening is different in one thing. Pebble first flushes what the logs hold, and
// would wait for ever for a table that waits for Close. So until Pebble has opened
// new tables go to memory, which takes about as much as the logs; then Open sees
// the failure and closes the store again.
//
// A checkpoint is a copy apart: its files are written straight to the file system
// below, and a write of theirs that fails is nothing to the store.
type disk struct {
	vfs.FS
	aside   string // what the paths of checkpoints begin with
	store   *Store
	syncs   atomic.Uint64
	opened  atomic.Bool
	spare   *vfs.MemFS // tables made after a failure, before opened
	logAt   atomic.Pointer[synced]
	editsAt atomic.Pointer[synced]
	unnamed unnamed
	logs    logList
}

// synced says how far a file is known to be durable.
type synced struct{ number, bytes uint64 }

// mark is what the next entry says of the files; nil before the first sync.
func (d *disk) mark() []byte {
	log, edits := d.logAt.Load(), d.editsAt.Load()
	if log == nil || edits == nil {
		return nil
	}
	return mark{log.number, log.bytes, edits.number, edits.bytes}.append(make([]byte, 0, 24))
}

// frozen says that the disk must not be changed any more.
func (d *disk) frozen() bool { return d.store.Err() != nil }

// apart says that a path is one of a checkpoint.
func (d *disk) apart(name string) bool { return d.aside != "" && strings.HasPrefix(name, d.aside) }

// failed notes a failed write. It says whether Pebble is to believe that it went
// well.
func (d *disk) failed(err error, name string) bool {
	d.store.fail(err)
	return !table(d.FS.PathBase(name))
}

// table says whether a file is one that Pebble reads while it is open.
func table(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// file makes the file that a call of make is to return.
func (d *disk) file(name string, open func() (vfs.File, error)) (vfs.File, error) {
	base := d.FS.PathBase(name)
	switch {
	case d.apart(name):
		return open()
	case d.frozen() && table(base) && d.opened.Load():
		<-d.store.closing
		return nil, d.store.Err()
	case d.frozen() && table(base):
		return d.spare.Create(base, vfs.WriteCategoryUnspecified)
	case d.frozen():
		return d.written(vfs.NewMemFile(nil), name), nil
	}
	d.unnamed.made(name, base, d.opened.Load())
	f, err := open()
	if err != nil {
		if d.failed(err, name) {
			return d.written(vfs.NewMemFile(nil), name), nil
		}
		return nil, err
	}
	return d.written(f, name), nil
}

func (d *disk) written(f vfs.File, name string) *written {
	w := &written{File: f, disk: d, name: name}
	base := d.FS.PathBase(name)
	if n, ok := logNumber(base); ok {
		w.number, w.known, w.log = n, &d.logAt, true
		if info, err := f.Stat(); err == nil { // one that is used again has its old length
			w.length = uint64(info.Size())
		}
	} else if n, ok := manifestNumber(base); ok {
		w.number, w.known = n, &d.editsAt
	}
	return w
}

// Create, ReuseForWrite and OpenReadWrite are where files for writing come from.
func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(d.FS.PathBase(name), "marker.") && (!d.frozen() || d.apart(name)) {
		if err := d.settle(d.FS.PathDir(name)); err != nil && d.apart(name) {
			return nil, err
		} else if err != nil {
			d.failed(err, name)
		}
	}
	return d.file(name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// settle makes the names in a directory durable. A marker names a file that was
// just made: without it a power loss could leave the marker and not the name of
// that file, since nothing orders the names of a directory until it is synced.
func (d *disk) settle(dir string) error {
	f, err := d.FS.OpenDir(dir)
	if err != nil {
		return err
	}
	d.syncs.Add(1)
	return firstError(f.Sync(), f.Close())
}

func (d *disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	d.unlist(oldname)
	return d.file(newname, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

func (d *disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

// Open is where files for reading come from.
func (d *disk) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if base := d.FS.PathBase(name); table(base) && d.frozen() && !d.apart(name) {
		if f, err := d.spare.Open(base, opts...); err == nil {
			return f, nil
		}
	}
	return d.FS.Open(name, opts...)
}

// OpenDir is where directories to be synced come from.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	switch {
	case err != nil:
		return nil, err
	case d.apart(name):
		return passing{f}, nil
	}
	return d.written(f, name), nil
}

// passing is a directory of a checkpoint. Pebble panics when one cannot be synced;
// this one is read only by the process that makes it, and is of no use after it.
type passing struct{ vfs.File }

func (passing) Sync() error     { return nil }
func (passing) SyncData() error { return nil }

// Remove and Rename change nothing once a write has failed: what is on the disk
// then is what the next open starts from.
func (d *disk) Remove(name string) error {
	if d.apart(name) {
		return d.FS.Remove(name)
	}
	d.unlist(name)
	if d.frozen() {
		return d.store.Err()
	}
	if strings.HasPrefix(d.FS.PathBase(name), "marker.") {
		// The one that takes its place must not be lost where this one's end is not.
		if err := d.settle(d.FS.PathDir(name)); err != nil {
			d.failed(err, name)
			return err
		}
	}
	return d.FS.Remove(name)
}

// unlist takes a log that is about to go out of the list.
func (d *disk) unlist(name string) {
	if n, ok := logNumber(d.FS.PathBase(name)); ok && !d.frozen() {
		if err := d.logs.drop(d, n); err != nil {
			d.failed(err, name)
		}
	}
}

func (d *disk) Rename(oldname, newname string) error {
	if d.apart(newname) {
		return d.FS.Rename(oldname, newname)
	}
	if d.frozen() {
		return nil
	}
	if err := d.FS.Rename(oldname, newname); err != nil && !d.failed(err, newname) {
		return err
	}
	return nil
}

// Unwrap lets Pebble find the file system below.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// written is a file or directory that Pebble writes or syncs.
type written struct {
	vfs.File
	disk   *disk
	name   string
	number uint64
	known  *atomic.Pointer[synced] // of logs and manifests: where to note what is durable
	size   atomic.Uint64
	log    bool
	listed atomic.Bool // of a log: it is in the list
	length uint64      // of a log: how long the file is, see reserve
}

// try writes unless the disk is frozen, and answers as disk says.
func (f *written) try(write func() error) error {
	err := error(nil)
	if f.disk.frozen() {
		err = f.disk.store.Err()
	} else {
		err = write()
	}
	if err != nil && f.disk.failed(err, f.name) {
		return nil
	}
	return err
}

// Write is how Pebble writes everything but what it writes over.
func (f *written) Write(p []byte) (int, error) {
	if f.known == &f.disk.editsAt && !f.disk.frozen() {
		f.disk.unnamed.told(f.name)
	}
	if f.log {
		f.reserve(len(p))
	}
	err := f.try(func() error { _, err := f.File.Write(p); return err })
	if err != nil {
		return 0, err
	}
	f.size.Add(uint64(len(p)))
	if f.log {
		f.disk.store.Stage(StageWritten)
	}
	return len(p), nil
}

// WriteAt writes over what is there.
func (f *written) WriteAt(p []byte, off int64) (int, error) {
	err := f.try(func() error { _, err := f.File.WriteAt(p, off); return err })
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Sync and SyncData make what was written durable.
func (f *written) Sync() error     { return f.sync(f.File.Sync) }
func (f *written) SyncData() error { return f.sync(f.File.SyncData) }

func (f *written) sync(sync func() error) error {
	size := f.size.Load() // what is written meanwhile may be left out
	f.disk.syncs.Add(1)
	err := f.try(func() error {
		if err := sync(); err != nil || !f.log || f.listed.Load() || size == 0 {
			return err
		}
		f.listed.Store(true)
		return f.disk.logs.add(f.disk, f.number)
	})
	if err == nil && f.known != nil && !f.disk.frozen() {
		f.known.Store(&synced{f.number, size})
		if f.log {
			f.disk.store.Stage(StageSynced)
		}
	}
	return err
}

// SyncTo promises nothing; it only starts to write.
func (f *written) SyncTo(length int64) (full bool, err error) {
	err = f.try(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Close closes the file below in any case.
func (f *written) Close() error {
	err := f.File.Close()
	if err != nil && f.disk.failed(err, f.name) {
		return nil
	}
	return err
}

// Syncs is how often a file of the store was synced since Open.
func (s *Store) Syncs() uint64 { return s.disk.syncs.Load() }
