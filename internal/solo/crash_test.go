package solo

import (
	"math/rand/v2"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// crash is what a power loss would have left, and what had been answered then.
type crash struct {
	fs       vfs.FS
	answered int
}

// crashes is a file system that keeps a copy of what a power loss would leave
// right before and after every sync of a log.
type crashes struct {
	vfs.FS
	percent int // of unsynced blocks that reach the disk
	rng     *rand.Rand
	mu      sync.Mutex
	mem     *vfs.MemFS // nil until begin
	told    int
	copies  []crash
}

func (c *crashes) begin(mem *vfs.MemFS) { c.mu.Lock(); defer c.mu.Unlock(); c.mem = mem }
func (c *crashes) answered(n int)       { c.mu.Lock(); defer c.mu.Unlock(); c.told = n }
func (c *crashes) taken() []crash       { c.mu.Lock(); defer c.mu.Unlock(); return c.copies }

func (c *crashes) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mem != nil {
		c.copies = append(c.copies, crash{c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.percent, RNG: c.rng}), c.told})
	}
}

type crashFile struct {
	vfs.File
	c *crashes
}

func (c *crashes) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return crashFile{f, c}, nil
}

func (f crashFile) Sync() error     { f.c.take(); err := f.File.Sync(); f.c.take(); return err }
func (f crashFile) SyncData() error { f.c.take(); err := f.File.SyncData(); f.c.take(); return err }
