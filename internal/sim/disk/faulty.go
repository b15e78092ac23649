package disk

import (
	"errors"
	"math"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrNoSpace is what a faulty disk answers.
var ErrNoSpace = errors.New("no space left on this device")

// Kind is what a file of a store is by its name: log, table, manifest, options,
// marker, list (of logs), lock; "directory" for the directory itself.
func Kind(name string) string {
	switch {
	case strings.HasSuffix(name, ".log"):
		return "log"
	case strings.HasSuffix(name, ".sst"), strings.HasSuffix(name, ".blob"):
		return "table"
	case strings.HasPrefix(name, "MANIFEST-"):
		return "manifest"
	case strings.HasPrefix(name, "OPTIONS-"), strings.HasSuffix(name, ".dbtmp"):
		return "options"
	case strings.HasPrefix(name, "marker."):
		return "marker"
	case strings.HasPrefix(name, "logs."):
		return "list"
	case name == "LOCK":
		return "lock"
	case !strings.Contains(name, "."):
		return "directory"
	}
	return "other"
}

// Faulty is a file system on which writes fail: making a file, writing, syncing,
// renaming. A write that fails leaves half of its bytes. Reading and removing go on.
// Writing over what is there fails on a full disk only: a store makes room with it
// that it does not rely on.
type Faulty struct {
	vfs.FS
	kind    string
	nth     int
	forever bool
	// OnFail is called at the first write that fails, if not nil.
	OnFail func()

	mu     sync.Mutex
	writes int
	failed int
	healed bool
}

// Fail lets the n-th write to files of a kind fail, "" for any; forever, every
// later one to any file as well.
func Fail(fs vfs.FS, kind string, nth int, forever bool) *Faulty {
	return &Faulty{FS: fs, kind: kind, nth: nth, forever: forever}
}

// Full is a file system on which writes fail from Fill on, until Heal.
func Full(fs vfs.FS) *Faulty { return Fail(fs, "", math.MaxInt, true) }

// Fill lets every write fail from now on.
func (f *Faulty) Fill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nth, f.healed = f.writes+1, false
}

// Heal makes the disk whole.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.healed = true
}

// Writes is how many writes of the kind there were, and Failed how many failed.
func (f *Faulty) Writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// Failed is how many writes have failed.
func (f *Faulty) Failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// write says whether the next write to a file works.
func (f *Faulty) write(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	fits := f.kind == "" || f.kind == Kind(f.FS.PathBase(name))
	if fits {
		f.writes++
	}
	if !f.healed && (fits && f.writes == f.nth || f.forever && f.writes >= f.nth) {
		if f.failed++; f.failed == 1 && f.OnFail != nil {
			f.OnFail()
		}
		return ErrNoSpace
	}
	return nil
}

func (f *Faulty) file(name string, open func() (vfs.File, error)) (vfs.File, error) {
	if err := f.write(name); err != nil {
		return nil, err
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f, name}, nil
}

// Create, ReuseForWrite and OpenReadWrite give what is written, OpenDir what is
// synced.
func (f *Faulty) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *Faulty) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(name, func() (vfs.File, error) { return f.FS.ReuseForWrite(old, name, c) })
}

func (f *Faulty) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.file(name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

func (f *Faulty) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f, name}, nil
}

// Rename is a write to the new name.
func (f *Faulty) Rename(old, name string) error {
	if err := f.write(name); err != nil {
		return err
	}
	return f.FS.Rename(old, name)
}

// Unwrap lets Pebble find the file system below.
func (f *Faulty) Unwrap() vfs.FS { return f.FS }

type faultyFile struct {
	vfs.File
	fs   *Faulty
	name string
}

// Write, WriteAt, Sync and SyncData may fail.
func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.fs.write(f.name); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *faultyFile) WriteAt(p []byte, at int64) (int, error) {
	if f.fs.forever {
		if err := f.fs.write(f.name); err != nil {
			return 0, err
		}
	}
	return f.File.WriteAt(p, at)
}

func (f *faultyFile) Sync() error {
	if err := f.fs.write(f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) SyncData() error {
	if err := f.fs.write(f.name); err != nil {
		return err
	}
	return f.File.SyncData()
}
