package kv

import (
	"math/rand/v2"
	"sync"

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
