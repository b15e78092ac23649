package kv

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// countedSyncs is a file system that keeps what a power loss at its n-th sync
// would leave, in some of the many ways.
type countedSyncs struct {
	*vfs.MemFS
	at   int
	mu   sync.Mutex
	seen int
	left []*vfs.MemFS
}

func (c *countedSyncs) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen++; c.seen != c.at {
		return
	}
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, uint64(c.at)))
		c.left = append(c.left, c.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng}))
	}
}

type countedFile struct {
	vfs.File
	fs *countedSyncs
}

func (c *countedSyncs) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return countedFile{f, c}, nil
}

func (c *countedSyncs) Create(name string, k vfs.DiskWriteCategory) (vfs.File, error) {
	return c.wrap(c.MemFS.Create(name, k))
}

func (c *countedSyncs) OpenDir(name string) (vfs.File, error) { return c.wrap(c.MemFS.OpenDir(name)) }

func (f countedFile) Sync() error     { f.fs.count(); return f.File.Sync() }
func (f countedFile) SyncData() error { f.fs.count(); return f.File.SyncData() }

// watchedNames notes what happens to names in the directory.
type watchedNames struct {
	vfs.FS
	mu       sync.Mutex
	happened []string
}

func (w *watchedNames) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happened = append(w.happened, what)
}

func (w *watchedNames) Create(name string, k vfs.DiskWriteCategory) (vfs.File, error) {
	w.note("make " + w.PathBase(name))
	return w.FS.Create(name, k)
}

func (w *watchedNames) Remove(name string) error {
	w.note("remove " + w.PathBase(name))
	return w.FS.Remove(name)
}

func (w *watchedNames) OpenDir(name string) (vfs.File, error) {
	f, err := w.FS.OpenDir(name)
	return watchedDir{f, w}, err
}

type watchedDir struct {
	vfs.File
	fs *watchedNames
}

func (d watchedDir) Sync() error {
	d.fs.note("sync")
	return d.File.Sync()
}

// A power loss may keep the removal of one name and lose the making of another:
// there is no order until the directory is synced.
func TestTheDirectoryIsSyncedAroundEveryMarker(t *testing.T) {
	killed, e := damageable(t, false)
	fs := &watchedNames{FS: killed}
	s, err := Open("db", Options{FS: fs, CacheBytes: 1 << 20})
	e.must(err)
	e.must(s.Close())
	made, removed := 0, 0
	for i, what := range fs.happened {
		switch {
		case strings.HasPrefix(what, "make marker."):
			made++
		case strings.HasPrefix(what, "remove marker."):
			removed++
		default:
			continue
		}
		if i == 0 || fs.happened[i-1] != "sync" {
			t.Errorf("%s comes after %q", what, fs.happened[:i])
		}
	}
	if made == 0 || removed == 0 {
		t.Errorf("%d markers were made and %d removed: the test tests nothing", made, removed)
	}
}
